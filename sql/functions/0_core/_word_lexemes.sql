-- The plain words of normalised text, with names taken apart, as the text search configuration stems them.
create or replace function pgrag._word_lexemes(search_config regconfig, normal text)
returns tsvector
language plpgsql
immutable
parallel safe
strict
security invoker
set search_path = pg_catalog, pg_temp
set client_min_messages = warning -- to_tsvector says so when it meets 2,048 equal signs in a row
as $$
declare
    words text := normal;
begin
    if words ~ '[[:lower:]][[:upper:]]|[[:upper:]]{2}[[:lower:]]{2}' then
        words := pg_catalog.regexp_replace(words, '([[:lower:]])([[:upper:]])', '\1 \2', 'g');
        words := pg_catalog.regexp_replace(words, '([[:upper:]])([[:upper:]][[:lower:]]{2})', '\1 \2', 'g');
    end if;
    -- No sign is left before a number, and nothing that to_tsvector would read as a tag, an entity, a host or a file.
    words := pg_catalog.regexp_replace(words, '[-_./:@#+\\&<>~]+', ' ', 'g');
    if words ~ '[[:alpha:]][0-9]' then
        words := pg_catalog.regexp_replace(words, '\m([[:alpha:]]+)([0-9]+)\M', '\1 \2', 'g');
    end if;
    if pg_catalog.octet_length(words) > 1020 and words ~ '[^[:space:][:punct:]]{255}' then
        words := pg_catalog.regexp_replace(words, '([^[:space:][:punct:]]{255})[^[:space:][:punct:]]+', '\1', 'g');
    end if;
    return pg_catalog.to_tsvector(search_config, words);
end
$$;

comment on function pgrag._word_lexemes(regconfig, text) is
'The words of text from _normalise_text(), stemmed, with positions that count stop words too.
Names come apart at case, punctuation and a trailing number: "getUserById", "get_user_by_id" and "get user by id" are the same words in
a row, and so are "TS-999", "ts999" and "TS 999". Words longer than 255 characters count by their first 255. NULL gives NULL.';
