-- Does the work of analyze(): words, joined names, identifiers.
create or replace function pgrag._analyze_text(config text, content text)
returns tsvector
language plpgsql
immutable
parallel safe
strict
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    search_config constant pg_catalog.regconfig := pgrag._analyzer_config(config);
    -- What one name was joined from, by hyphens, underscores, case or a trailing number; and numbers with thousands separators.
    joined constant text := '[[:alnum:]]+(?:[-_]+[[:alnum:]]+)+'
        '|[[:alnum:]]*(?:[[:lower:]][[:upper:]]|[[:upper:]]{2}[[:lower:]]{2})[[:alnum:]]*'
        '|\m[[:alpha:]]+[0-9]+\M'
        '|\m[0-9]{1,3}(?:,[0-9]{3})+\M';
    normal constant text := pgrag._normalise_text(content);
    whole text;
    lexemes tsvector := pgrag._word_lexemes(search_config, normal);
begin
    -- Joined names once more as one word, stemmed like any word: "e-mail" meets "email", "TS-999" meets "ts999".
    select pg_catalog.string_agg(pg_catalog.translate(m.found[1], '-_,', ''), ' ') into whole
    from pg_catalog.regexp_matches(normal, joined, 'g') as m (found)
    where pg_catalog.length(m.found[1]) <= 255;
    if whole is not null then
        lexemes := lexemes || pg_catalog.to_tsvector(search_config, whole);
    end if;
    if normal ~ '[[:alnum:]][-.:@&+#/]+[[:alnum:]]|[[:alnum:]](?:\+\+|#)|(?:^|[^[:alnum:].])\.[[:alpha:]]' then
        lexemes := lexemes || pgrag._identifier_lexemes(normal);
    end if;
    if pg_catalog.octet_length(normal) > pg_catalog.length(normal) then
        return pgrag._fold_accents(config, lexemes);
    end if;
    return lexemes;
end
$$;

comment on function pgrag._analyze_text(text, text) is
'What analyze() does, without its answer for texts that are too long: to_tsvector''s own error (54000) leaves this function.
NULL gives NULL.';
