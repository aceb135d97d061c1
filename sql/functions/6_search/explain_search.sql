-- Says why a chunk is at its place in a search, or at which stage it was lost.
create or replace function pgrag.explain_search(
    query text,
    chunk_ids bigint[],
    k int default 10,
    collections text[] default null,
    embedding halfvec default null,
    filter jsonb default '{}',
    depth int default null,
    rrf_k int default null,
    weights jsonb default null,
    space text default null,
    exact boolean default false,
    fusion text default null
) returns table (chunk_id bigint, stage text, rank int, value float8, detail text)
language plpgsql stable parallel unsafe security invoker
set search_path from current
as $$
declare
    acl_ids int[] := pgrag._few_acl_ids();
begin
    perform pgrag._check_range('k', k, 1, 1000);
    perform pgrag._check_range('number of chunk_ids', coalesce(cardinality(chunk_ids), 0), 0, 1000);
    return query
    with visible as materialized (
        select v.collection_id, v.analyzers, v.k1, v.b, v.chunks, v.lexemes, v.search_settings
        from pgrag._visible_collections(collections) as v
    ),

    -- The `limit` keeps the planner from reading every chunk and joining the few that are asked about to them.
    asked as materialized (
        select c.collection_id, c.chunk_id, c.tsv, c.lexeme_count, v.analyzers, v.k1, v.b, v.chunks, v.lexemes, a.place,
            c.metadata @> filter as passes
        from unnest(chunk_ids) with ordinality as a (chunk_id, place)
        cross join (select array_agg(v.collection_id) as ids from visible as v) as s
        cross join lateral (
            select h.collection_id, h.chunk_id, h.tsv, h.lexeme_count, d.metadata
            from pgrag.chunk as h
            inner join pgrag.document as d on d.collection_id = h.collection_id and d.document_id = h.document_id
            where h.collection_id = any(s.ids) and h.chunk_id = a.chunk_id
            limit 1
        ) as c
        inner join visible as v on v.collection_id = c.collection_id
    ),

    parsed as materialized (
        select d.analyzers, p.terms, p.counts, p.required, p.excluded
        from (select distinct a.analyzers from asked as a) as d
        cross join lateral pgrag._parse_query_by(d.analyzers, query) as p
    ),

    term as materialized (
        select a.collection_id, w.lexeme, w.n, hashtextextended(w.lexeme collate "C", 0) as term
        from (select distinct a.collection_id, a.analyzers from asked as a) as a
        inner join parsed as p on p.analyzers = a.analyzers
        cross join lateral unnest(p.terms, p.counts) as w (lexeme, n)
    ),

    frequency as materialized (
        select c.collection_id, f.term, f.df
        from (select t.collection_id, array_agg(t.term) as terms from term as t group by t.collection_id) as c
        cross join lateral (
            select r.term, sum(r.sign * r.n) as df from pgrag._runs(c.collection_id, c.terms, acl_ids) as r group by r.term
        ) as f
    ),

    -- How many candidates each arm has, as in _fuse.
    reach as materialized (
        select s.depth
        from (select array_agg(v.search_settings) as settings from visible as v) as v
        cross join lateral pgrag._search_settings(v.settings, k, explain_search.depth, rrf_k, weights, fusion) as s
    ),

    -- Every candidate of both arms, in the order of fusion.
    found as materialized (
        select f.chunk_id, f.place, f.score, f.lexical_rank, f.lexical_score, f.dense_rank, f.dense_distance, f.dense_plan
        from pgrag._fuse(query, collections, embedding, filter, depth, rrf_k, weights, space, exact, fusion, k) as f
    ),

    -- A full join, which is never a nested loop: nobody knows before how many words a query has.
    weighed as materialized (
        select t.collection_id, t.lexeme, t.n, f.df
        from term as t
        full join frequency as f on f.collection_id = t.collection_id and f.term = t.term
    ),

    -- Read once a chunk, not once a word of the query.
    held as materialized (
        select a.collection_id, a.chunk_id, a.place, l.lexeme, least(cardinality(l.positions), 255) as tf, a.lexeme_count,
            a.chunks, a.lexemes::float8 / a.chunks as average, a.k1, a.b
        from asked as a
        cross join lateral unnest(a.tsv) as l
    ),

    word as materialized (
        select h.chunk_id, h.place, h.lexeme, h.tf, h.lexeme_count, t.df, h.chunks, t.n, h.average, h.k1, h.b
        from held as h
        inner join weighed as t on t.collection_id = h.collection_id and t.lexeme = h.lexeme
    ),

    barred as materialized (
        select a.place,
            case
                when not a.tsv @@ p.required then 'lost: it lacks a phrase of the query'
                else 'lost: it holds what the query excludes'
            end as detail
        from asked as a
        inner join parsed as p on p.analyzers = a.analyzers
        where not a.tsv @@ p.required or a.tsv @@ p.excluded
    ),

    reason as (
        select w.place, 1 as step, w.chunk_id, 'word' as stage, null::int as rank,
            w.n * pgrag._bm25_most(w.chunks, w.df, w.k1) * pgrag._bm25_share(w.tf, w.lexeme_count, w.average, w.k1, w.b) as value,
            format('"%s" stands %s times in %s words; %s of %s passages have it', w.lexeme, w.tf, w.lexeme_count, w.df, w.chunks) as detail
        from word as w
        union all
        select a.place, 2, a.chunk_id, 'lexical', f.lexical_rank, f.lexical_score,
            case
                when not a.passes then 'lost: the metadata does not contain the filter'
                when b.detail is not null then b.detail
                when f.lexical_rank is not null then format('place %s by words', f.lexical_rank)
                when a.chunk_id in (select w.chunk_id from word as w) then format('not among the first %s by words', h.depth)
                else 'none of the query''s words'
            end
        from asked as a
        cross join reach as h
        left join found as f on f.chunk_id = a.chunk_id
        left join barred as b on b.place = a.place
        union all
        select a.place, 3, a.chunk_id, 'dense', f.dense_rank, f.dense_distance,
            case
                when not a.passes then 'lost: the metadata does not contain the filter'
                when b.detail is not null then b.detail
                when f.dense_rank is not null then format('place %s by meaning; %s', f.dense_rank, f.dense_plan)
                when exists (select from found as g where g.dense_rank is not null) then
                    format('not among the first %s by meaning', h.depth)
                else 'no query vector, or no vectors: words alone were searched'
            end
        from asked as a
        cross join reach as h
        left join found as f on f.chunk_id = a.chunk_id
        left join barred as b on b.place = a.place
        union all
        select a.place, 4, a.chunk_id, 'fusion', f.place, f.score,
            case
                when f.place <= explain_search.k then format('kept at place %s', f.place)
                when f.place is not null then format('lost: place %s, and k is %s', f.place, explain_search.k)
                else 'lost: no arm had it'
            end
        from asked as a
        left join found as f on f.chunk_id = a.chunk_id
    )

    select r.chunk_id, r.stage, r.rank, r.value, r.detail
    from reason as r
    order by r.place, r.step, r.value desc, r.detail;
end
$$;

comment on function pgrag.explain_search(text, bigint[], int, text[], halfvec, jsonb, int, int, jsonb, text, boolean, text) is
'Says why chunks are at their places in a search, or at which stage they were lost.
chunk_ids: those asked about, at most 1,000; one that the caller may not see gives no row, like one that isn''t there. The other arguments as in pgrag.search.
Rows per chunk, in the order asked: `word` for each word of the query in it, with what it gave (value: BM25); `lexical` and `dense` with the place and score or distance in that arm; `fusion` with the final place and score. rank from 1; NULL where the stage did not have it. Errors: as in pgrag.search.';
