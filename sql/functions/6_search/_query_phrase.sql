-- Turns a quoted phrase, or an excluded word, into the tsquery that a chunk's tsvector is checked against.
create or replace function pgrag._query_phrase(config text, phrase text)
returns tsquery
language plpgsql
immutable
parallel safe
strict
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    normal constant text := pgrag._normalise_text(phrase);
    words tsvector := pgrag._word_lexemes(pgrag._analyzer_config(config), normal);
    marks tsvector := pgrag._identifier_lexemes(normal);
    written text;
begin
    if pg_catalog.octet_length(normal) > pg_catalog.length(normal) then
        words := pgrag._fold_accents(config, words);
        marks := pgrag._fold_accents(config, marks);
    end if;
    -- One CJK character is the start of a bigram.
    select pg_catalog.string_agg(
        placed.step || '''' || pg_catalog.replace(pg_catalog.replace(placed.lexeme, '\', '\\'), '''', '''''') || ''''
        || case when pg_catalog.length(placed.lexeme) = 1 and pg_catalog.ascii(placed.lexeme) >= 12288 then ':*' else '' end,
        ' ' order by placed.place, placed.lexeme
    ) into written
    from (
        select
            w.lexeme,
            p.place,
            coalesce('<' || (p.place - pg_catalog.lag(p.place) over (order by p.place, w.lexeme))::text || '> ', '') as step
        from pg_catalog.unnest(words) as w
        cross join lateral pg_catalog.unnest(w.positions) as p (place)
    ) as placed;
    -- Words alone can't tell C++ from C#, nor .NET from a net.
    select pg_catalog.concat_ws(' & ', '(' || written || ')', pg_catalog.string_agg('''' || m.lexeme || '''', ' & ' order by m.lexeme))
    into written
    from pg_catalog.unnest(marks) as m
    where m.lexeme ~ '[+#]$|^\.';
    return nullif(written, '')::tsquery;
end
$$;

comment on function pgrag._query_phrase(text, text) is
'The tsquery that says a chunk has these words in a row, at the distances they have here; NULL when no word is left.
Joined names match however they are joined ("TS-999" matches TS999 and TS 999), while c++, c# and .net must stand in the chunk as
they are. To be checked with @@ on tsvectors made by analyze() with the same config.';
