-- Shows the parts of chunks that a query looks for, with the matches marked.
create or replace function pgrag.snippets(
    query text,
    chunk_ids bigint[],
    max_characters int default 240,
    max_fragments int default 2,
    start_mark text default '<mark>',
    stop_mark text default '</mark>',
    escape_html boolean default true
) returns table (chunk_id bigint, snippet text)
language plpgsql stable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgrag._check_range('max_characters', max_characters, 1, 10000);
    perform pgrag._check_range('max_fragments', max_fragments, 1, 20);
    perform pgrag._check_range('number of chunk_ids', coalesce(cardinality(chunk_ids), 0), 0, 1000);
    return query
    with scope as materialized (
        select array_agg(c.collection_id) as ids from pgrag.collection as c
    ),

    -- The `limit` keeps the planner from reading every chunk and joining the few that are asked about to them.
    asked as materialized (
        -- Words are letters by the database's collation, not by that of a column.
        select a.chunk_id, a.place, c.content, c.analyzer collate "default" as analyzer
        from unnest(chunk_ids) with ordinality as a (chunk_id, place)
        cross join scope as s
        cross join lateral (
            select h.content, h.analyzer
            from pgrag.chunk as h
            where h.collection_id = any(s.ids) and h.chunk_id = a.chunk_id
            limit 1
        ) as c
    ),

    parsed as materialized (
        select d.analyzer, p.terms, p.counts, p.prefixes, p.required
        from (select distinct a.analyzer from asked as a) as d
        cross join lateral pgrag._parse_query(d.analyzer, query) as p
        where query is not null
    )

    select a.chunk_id, pgrag._snippet(
        a.content, a.analyzer, p.terms, p.counts, p.prefixes, p.required,
        max_characters, max_fragments, coalesce(start_mark, ''), coalesce(stop_mark, ''), coalesce(escape_html, true)
    )
    from asked as a
    inner join parsed as p on p.analyzer = a.analyzer
    order by a.place;
end
$$;

comment on function pgrag.snippets(text, bigint[], int, int, text, text, boolean) is
'Shows the parts of chunks that a query looks for, with the matches marked: pgrag.snippet of each, by the analyzer of its language.
chunk_ids: at most 1,000. The other arguments are those of pgrag.snippet. A row a chunk, in the order asked; one that the caller may not see gives no row, like one that isn''t there. A NULL query gives no row. Errors: RG001, RG011.';
