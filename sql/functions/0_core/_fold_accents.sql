-- Takes the accents off lexemes where the analyzer's language doesn't tell letters apart by them.
create or replace function pgrag._fold_accents(config text, lexemes tsvector)
returns tsvector
language plpgsql
immutable
parallel safe
strict
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    written text;
begin
    -- Here å, ä, ö, ø, õ, ő, ş and the like are letters of their own, with places in the alphabet and words that differ by them only.
    if config in ('danish', 'estonian', 'finnish', 'hungarian', 'lithuanian', 'norwegian', 'swedish', 'turkish') then
        return lexemes;
    end if;
    written := lexemes::text;
    if written !~ '[\u00c0-\u024f\u0370-\u03ff\u1e00-\u1fff]' then
        return lexemes;
    end if;
    if config = 'spanish' then
        -- año is not ano: the tilde waits in a private character.
        written := pg_catalog.translate(written, 'ñ', E'\ue000');
    end if;
    written := pg_catalog.regexp_replace(
        normalize(written, nfd), '([a-z\u0370-\u03ff])[\u0300-\u036f]+', '\1', 'g'
    );
    written := pg_catalog.translate(normalize(written, nfc), E'łøđı\ue000', 'lodiñ');
    if written ~ '[ßæœ]' then
        written := pg_catalog.replace(pg_catalog.replace(pg_catalog.replace(written, 'ß', 'ss'), 'æ', 'ae'), 'œ', 'oe');
    end if;
    return written::tsvector;
end
$$;

comment on function pgrag._fold_accents(text, tsvector) is
'Lexemes without the accents of Latin and Greek letters, where the analyzer''s language doesn''t tell letters apart by them.
Comes after the stemmer and the stop words, which know accented forms. Danish, Estonian, Finnish, Hungarian, Lithuanian, Norwegian,
Swedish and Turkish keep theirs; Spanish keeps ñ. Lexemes that become equal share their positions. NULL gives NULL.';
