-- Takes names apart and leaves words with spaces between, before any language sees them.
create or replace function pgrag._plain_words(normal text)
returns text
language plpgsql
immutable
parallel safe
strict
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    words text := normal;
begin
    if words ~ '[[:lower:]][[:upper:]]|[[:upper:]]{2}[[:lower:]]{2}|[[:lower:]][0-9]+[[:upper:]][[:lower:]]' then
        words := pg_catalog.regexp_replace(
            words, '([[:lower:]])(?=[[:upper:]])|([[:upper:]0-9])(?=[[:upper:]][[:lower:]]{2})', '\1\2 ', 'g'
        );
    end if;
    -- No sign is left before a number, and nothing that to_tsvector would read as a tag, an entity, a host or a file.
    words := pg_catalog.regexp_replace(words, '[-_./:@#+\\&<>~]+', ' ', 'g');
    -- A number comes off the letters before it, and off a unit or a last letter: ts999, 500mg, 12345A.
    words := pg_catalog.regexp_replace(
        words, '\m(?:([[:alpha:]]+)([0-9]+)|([0-9]+)([[:alpha:]]{1,3}))\M', '\1\3 \2\4', 'g'
    );
    if pg_catalog.octet_length(words) > 1020 and words ~ '[^[:space:][:punct:]]{255}' then
        words := pg_catalog.regexp_replace(words, '([^[:space:][:punct:]]{255})[^[:space:][:punct:]]+', '\1', 'g');
    end if;
    return words;
end
$$;

comment on function pgrag._plain_words(text) is
'The words of text from _normalise_text(), as they are written, with names taken apart at case, punctuation and where letters meet a number.
Words longer than 255 characters keep their first 255. NULL gives NULL.';
