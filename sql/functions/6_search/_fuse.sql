-- Runs the arms of a search and fuses their rankings.
-- RRF(d) = sum over arms of weight / (k + rank), rank from 1. Cormack, Clarke and Buettcher 2009.
create or replace function pgrag._fuse(
    query text,
    collections text[],
    embedding halfvec,
    filter jsonb,
    depth int,
    rrf_k int,
    weights jsonb,
    space text,
    exact boolean
) returns table (
    chunk_id bigint,
    place int,
    score float8,
    lexical_rank int,
    lexical_score float8,
    dense_rank int,
    dense_distance float8,
    dense_plan text
)
language plpgsql stable parallel unsafe security invoker
set search_path from current
as $$
declare
    lexical_weight float8 := pgrag._weight(weights, 'lexical');
    dense_weight float8 := pgrag._weight(weights, 'dense');
begin
    perform pgrag._check_range('depth', depth, 1, 10000);
    perform pgrag._check_range('rrf_k', rrf_k, 1, 1000000);
    perform pgrag._check_filter(filter);

    return query
    with lexical as materialized (
        select l.chunk_id, l.rank, l.score
        from pgrag.search_lexical(query, depth, collections, filter) as l
        where lexical_weight > 0
    ),

    -- Phrases and exclusions bind every arm.
    checked as materialized (
        select c.collection_id, p.required, p.excluded
        from pgrag._visible_collections(collections) as c
        cross join lateral pgrag._parse_query_by(c.analyzers, query) as p
        where p.required is not null or p.excluded is not null
    ),

    dense as materialized (
        select d.chunk_id, row_number() over (partition by (a.of_space).space_id order by d.distance, d.chunk_id) as rank, d.distance,
            d.plan || case when _fuse.embedding is null then '; query by ' || (a.of_space).query_encoder else '' end as plan
        from pgrag._dense_arms(query, _fuse.embedding, _fuse.collections, _fuse.space) as a
        cross join lateral pgrag._nearest(a.of_space, a.collection_ids, a.embedding, depth, filter, a.visible, exact) as d
        where dense_weight > 0 and a.embedding is not null and not exists (
            select from checked as k
            inner join pgrag.chunk as c on c.collection_id = k.collection_id and c.chunk_id = d.chunk_id
            where not (coalesce(c.tsv @@ k.required, true) and coalesce(not c.tsv @@ k.excluded, true))
        )
    ),

    fused as (
        select coalesce(l.chunk_id, d.chunk_id) as chunk_id,
            coalesce(lexical_weight / (rrf_k + l.rank), 0) + coalesce(dense_weight / (rrf_k + d.rank), 0) as score,
            l.rank as lexical_rank, l.score as lexical_score,
            d.rank::int as dense_rank, d.distance as dense_distance, d.plan as dense_plan
        from lexical as l
        full join dense as d on d.chunk_id = l.chunk_id
    )

    select f.chunk_id, (row_number() over (order by f.score desc, f.chunk_id))::int, f.score,
        f.lexical_rank, f.lexical_score, f.dense_rank, f.dense_distance, f.dense_plan
    from fused as f
    order by f.score desc, f.chunk_id;
end
$$;

comment on function pgrag._fuse(text, text[], halfvec, jsonb, int, int, jsonb, text, boolean) is
'Runs the arms of a search and fuses their rankings by reciprocal rank: every candidate of every arm, best first, ties by chunk_id; place from 1. Arguments and errors as in pgrag.search.';
