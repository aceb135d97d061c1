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
begin
    -- English has no accents of its own; where a language has, its stemmer needs them.
    if pg_catalog.octet_length(normal) > pg_catalog.length(normal) and search_config::text in ('english', 'simple') then
        return pg_catalog.to_tsvector(search_config, pgrag._fold_letters(search_config::text, pgrag._plain_words(normal collate "default")));
    end if;
    return pg_catalog.to_tsvector(search_config, pgrag._plain_words(normal collate "default"));
end
$$;

comment on function pgrag._word_lexemes(regconfig, text) is
'The words of text from _normalise_text(), stemmed, with positions that count stop words too.
Names come apart at case, punctuation and where letters meet a number: "getUserById", "get_user_by_id" and "get user by id" are the same
words in a row, and so are "TS-999", "ts999" and "TS 999". Words longer than 255 characters count by their first 255. NULL gives NULL.';
