-- Turns text into the lexemes that the lexical index counts, the same way for chunks and for queries.
create or replace function pgrag.analyze(config text, content text)
returns tsvector
language plpgsql
immutable
parallel safe
strict
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    -- No text up to here can fill a tsvector: one byte makes less than sixteen. An exception block costs more than the test.
    always_fits_bytes constant int := 65536;
begin
    -- The collation of a column says what a letter is, and lexemes must not depend on where the arguments stand.
    if pg_catalog.octet_length(content) <= always_fits_bytes then
        return pgrag._analyze_text(config collate "default", content collate "default");
    end if;
    begin
        return pgrag._analyze_text(config collate "default", content collate "default");
    exception when program_limit_exceeded then
        raise exception 'a text of % bytes has more different words than one chunk can hold (1 MB of lexemes)', pg_catalog.octet_length(content)
            using errcode = 'RG013', hint = 'Split it into smaller chunks.';
    end;
end
$$;

comment on function pgrag.analyze(text, text) is
'The lexemes of a text, the same for chunks and for queries: what the lexical index counts.
config names a text search configuration in pg_catalog ("english", "german", "simple", every Snowball language); RG010 where there is none.
Words go through it after NFKC. Accents go where the language allows: before the stemmer in English, else after it, and where leaving them
out makes another stem, that is there too, in the same place. Names come apart at case, punctuation and where letters meet a number; what
was joined is kept as one word as well, and identifiers whose punctuation means something are kept with it: TS-999 gives ts, 999, ts999 and
ts-999, and TS 999 gives ts999 too. Chinese, Japanese and Korean give bigrams. Positions: the words count from 1, stop words included, so
that phrases can be checked with @@; joined names and identifiers follow after the last word, one position for each time they stand there.
No word gives an empty vector, NULL gives NULL. Words longer than 255 characters count by their first 255. RG013 where the result would
pass the 1 MB that a tsvector holds, which needs a text of more than 64 kB. The same whatever the collation of the arguments; what a letter
is, the database''s own collation says.';
