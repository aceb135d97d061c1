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
    written constant text := lexemes::text;
    folded text;
begin
    if pg_catalog.octet_length(written) = pg_catalog.length(written) then
        return lexemes;
    end if;
    folded := pgrag._fold_letters(config, written);
    if folded = written then
        return lexemes;
    end if;
    return folded::tsvector;
end
$$;

comment on function pgrag._fold_accents(text, tsvector) is
'Lexemes without accents, as _fold_letters() writes them.
Comes after the stemmer and the stop words, which know accented forms. Lexemes that become equal share their positions. NULL gives NULL.';
