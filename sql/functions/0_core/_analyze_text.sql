-- Does the work of analyze(): words, joined names, identifiers.
create or replace function pgrag._analyze_text(config text, content text)
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
    search_config constant pg_catalog.regconfig := pgrag._analyzer_config(config);
    normal text := pgrag._normalise_text(content);
    words constant text := pgrag._plain_words(normal);
    folded text := words;
    joined text;
    lexemes tsvector;
    unmarked tsvector;
    places smallint[];
begin
    if pg_catalog.octet_length(normal) > pg_catalog.length(normal) then
        folded := pgrag._fold_letters(config, words);
    end if;
    lexemes := pg_catalog.to_tsvector(search_config, folded);
    if folded <> words then
        normal := pgrag._fold_letters(config, normal);
        if config not in ('english', 'simple') then
            -- The stemmer knows words with their accents, and people leave them out. Where that makes two stems, both are there, in
            -- one place; where the word with accents is a stop word, none.
            unmarked := lexemes;
            lexemes := pgrag._fold_accents(config, pg_catalog.to_tsvector(search_config, words));
            unmarked := pg_catalog.ts_delete(unmarked, pg_catalog.tsvector_to_array(lexemes));
            if pg_catalog.length(unmarked) > 0 then
                places := array(
                    select p.place from pg_catalog.unnest(lexemes) as l cross join lateral pg_catalog.unnest(l.positions) as p (place)
                );
                unmarked := pg_catalog.ts_delete(
                    unmarked, array(select u.lexeme from pg_catalog.unnest(unmarked) as u where not u.positions && places)
                );
                lexemes := (lexemes::text || ' ' || unmarked::text)::tsvector;
            end if;
        end if;
    end if;
    -- Joined names once more as one word, stemmed like any word: "e-mail" meets "email", "TS-999" meets "ts999".
    joined := pgrag._joined_names(search_config, normal);
    if joined is not null then
        lexemes := lexemes || pg_catalog.to_tsvector(search_config, joined);
    end if;
    if pg_catalog.strpos(normal, '.') > 0 or pg_catalog.strpos(normal, '-') > 0 or pg_catalog.strpos(normal, '/') > 0
        or pg_catalog.strpos(normal, ':') > 0 or pg_catalog.strpos(normal, '@') > 0 or pg_catalog.strpos(normal, '#') > 0
        or pg_catalog.strpos(normal, '+') > 0 or pg_catalog.strpos(normal, '&') > 0
    then
        lexemes := lexemes || pgrag._identifier_lexemes(normal);
    end if;
    return lexemes;
end
$$;

comment on function pgrag._analyze_text(text, text) is
'What analyze() does, without its answer for texts that are too long: to_tsvector''s own error (54000) leaves this function.
NULL gives NULL.';
