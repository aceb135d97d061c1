-- Takes the accents off letters where the analyzer's language doesn't tell letters apart by them.
create or replace function pgrag._fold_letters(config text, content text)
returns text
language plpgsql
immutable
parallel safe
strict
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    -- Latin and Greek letters beyond ASCII; alef with its marks, teh marbuta.
    marked constant text := '[\u00c0-\u024f\u0370-\u03ff\u0622\u0623\u0625\u0629\u0671\u1e00-\u1fff]';
    -- Letters of their own, with places in the alphabet and words that differ by them only; and what the stemmer unites.
    kept constant text := case config
        when 'arabic' then 'آأإٱ'
        when 'danish' then 'æøåÆØÅ'
        when 'estonian' then 'äõöšüžÄÕÖŠÜŽ'
        when 'finnish' then 'åäöÅÄÖ'
        when 'hungarian' then 'áéíóöőúüűÁÉÍÓÖŐÚÜŰ'
        when 'lithuanian' then 'ąčęėįšųūžĄČĘĖĮŠŲŪŽ'
        when 'norwegian' then 'æøåÆØÅ'
        when 'spanish' then 'ñÑ'
        when 'swedish' then 'åäöÅÄÖ'
        when 'turkish' then 'çğöşüÇĞÖŞÜ'
        else ''
    end;
    letters text;
    plain text;
    folded text := content;
begin
    if content !~ marked then
        return content;
    end if;
    -- Only those that occur: translate() compares each character of the text with every letter it is given.
    select pg_catalog.string_agg(f.letter, '' order by f.letter), pg_catalog.string_agg(f.plain, '' order by f.letter) into letters, plain
    from (
        select
            m.letter,
            pg_catalog.translate(pg_catalog.left(normalize(m.letter, nfd), 1), 'łŁøØđĐðÐħıςآأإٱة', 'lLoOdDdDhiσااااه') as plain
        from (select distinct r.found[1] as letter from pg_catalog.regexp_matches(content, marked, 'g') as r (found)) as m
        where pg_catalog.strpos(kept, m.letter) = 0
    ) as f
    where f.plain <> f.letter;
    if letters is not null then
        folded := pg_catalog.translate(folded, letters, plain);
    end if;
    if config not in ('danish', 'norwegian') then
        folded := pg_catalog.replace(pg_catalog.replace(folded, 'æ', 'ae'), 'Æ', 'AE');
    end if;
    folded := pg_catalog.replace(pg_catalog.replace(folded, 'œ', 'oe'), 'Œ', 'OE');
    return folded;
end
$$;

comment on function pgrag._fold_letters(text, text) is
'Text without the accents of Latin and Greek letters and without what Arabic letters are often typed without, where the analyzer''s language
doesn''t tell letters apart by them. Danish, Estonian, Finnish, Hungarian, Lithuanian, Norwegian, Spanish, Swedish
and Turkish keep the letters of their alphabets. Case stays; text is what _normalise_text() gives. NULL gives NULL.';
