-- Writes what stands before a star as the beginnings that lexemes may have.
create or replace function pgrag._query_prefix(config text, word text)
returns text[]
language plpgsql
immutable
parallel safe
strict
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    -- Identifiers are kept without the scheme of a URL.
    normal constant text := pg_catalog.regexp_replace(
        pg_catalog.lower(pg_catalog.btrim(pgrag._normalise_text(word))), '^[[:alpha:]]+:/+', ''
    );
    joined constant text := pg_catalog.translate(normal, '-_', '');
    stem constant text[] := pg_catalog.tsvector_to_array(pgrag._word_lexemes(pgrag._analyzer_config(config), joined));
    beginnings text[] := '{}';
begin
    -- With punctuation it may be a whole identifier's beginning; lexemes without are joined names and words.
    if normal ~ '[.:@&+#/]|[0-9].*-|-.*[0-9]' then
        beginnings := beginnings || normal;
    end if;
    if joined ~ '^[^[:space:].:@&+#/]+$' then
        if pg_catalog.cardinality(stem) = 1 and pg_catalog.starts_with(joined, stem[1]) then
            beginnings := beginnings || stem[1];
        elsif pg_catalog.cardinality(stem) = 1 then
            beginnings := beginnings || joined || stem[1];
        else
            beginnings := beginnings || joined;
        end if;
    end if;
    return array(
        select distinct f.lexeme collate "C"
        from pg_catalog.unnest(beginnings) as b (beginning)
        cross join lateral pg_catalog.unnest(pgrag._fold_accents(
            config, ('''' || pg_catalog.replace(pg_catalog.replace(b.beginning, '\', '\\'), '''', '''''') || ''':1')::tsvector
        )) as f
        where b.beginning <> ''
        order by 1
    );
end
$$;

comment on function pgrag._query_prefix(text, text) is
'The beginnings, in lower case, distinct and in C order, that a lexeme must have one of to match "word*".
Where stemming cuts the word, the stem ("rotation*" finds rotat, which rotations became); where stemming changes its end, both. Hyphens
and underscores vanish as in joined names, and stay where the word may begin an identifier: ts-9 gives ts-9 and ts9.';
