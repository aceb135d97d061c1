-- Runs the arms of a search and fuses their rankings.
-- RRF(d) = sum over arms of weight / (k + rank), rank from 1. Cormack, Clarke and Buettcher 2009.
-- Min-max: sum over arms of weight * (score - lowest) / (highest - lowest), over an arm's candidates. Fox and Shaw 1994; Lee 1997.
create or replace function pgrag._fuse(
    query text,
    collections text[],
    embedding halfvec,
    filter jsonb,
    depth int,
    rrf_k int,
    weights jsonb,
    space text,
    exact boolean,
    fusion text default null,
    least_depth int default 1
) returns table (
    chunk_id bigint,
    place int,
    score float8,
    lexical_rank int,
    lexical_score float8,
    dense_rank int,
    dense_distance float8,
    dense_plan text,
    searched int[]
)
language plpgsql stable parallel unsafe security invoker
set search_path from current
set plan_cache_mode = force_generic_plan
as $$
declare
    settings jsonb[];
    collection_ids int[];
    analyzers text[];
    lexical_weight float8;
    dense_weight float8;
begin
    perform pgrag._check_filter(filter);
    select array_agg(c.search_settings), array_agg(c.collection_id), array_agg(c.analyzers::text)
    into settings, collection_ids, analyzers
    from pgrag._visible_collections(collections) as c;
    select s.depth, s.rrf_k, s.weights, s.fusion into depth, rrf_k, weights, fusion
    from pgrag._search_settings(settings, least_depth, depth, rrf_k, weights, fusion) as s;
    lexical_weight := pgrag._weight(weights, 'lexical');
    dense_weight := pgrag._weight(weights, 'dense');

    return query
    with lexical as materialized (
        select l.chunk_id, l.rank, l.score
        from pgrag.search_lexical(query, depth, collections, filter) as l
        where lexical_weight > 0
    ),

    -- Phrases and exclusions bind every arm.
    checked as materialized (
        select u.collection_id, p.required, p.excluded
        from unnest(collection_ids, analyzers) as u (collection_id, analyzers)
        cross join lateral pgrag._parse_query_by(u.analyzers::text[], query) as p
        where p.required is not null or p.excluded is not null
    ),

    dense as materialized (
        select d.chunk_id, (a.of_space).space_id, row_number() over (partition by (a.of_space).space_id order by d.distance, d.chunk_id) as rank, d.distance,
            d.plan || case when _fuse.embedding is null then '; query by ' || (a.of_space).query_encoder else '' end as plan
        from pgrag._dense_arms(query, _fuse.embedding, _fuse.collections, _fuse.space) as a
        cross join lateral pgrag._nearest(a.of_space, a.collection_ids, a.embedding, depth, filter, a.visible, exact) as d
        where dense_weight > 0 and a.embedding is not null and not exists (
            select from checked as k
            inner join pgrag.chunk as c on c.collection_id = k.collection_id and c.chunk_id = d.chunk_id
            where not (coalesce(c.tsv @@ k.required, true) and coalesce(not c.tsv @@ k.excluded, true))
        )
    ),

    -- What each arm gives a candidate; where all of an arm scored the same, the whole weight.
    lexical_share as (
        select l.chunk_id, l.rank, l.score,
            lexical_weight * case fusion
                when 'minmax' then coalesce((l.score - min(l.score) over ()) / nullif(max(l.score) over () - min(l.score) over (), 0), 1)
            end as by_score
        from lexical as l
    ),

    dense_share as (
        select d.chunk_id, d.rank, d.distance, d.plan,
            dense_weight * case fusion
                when 'minmax' then coalesce((max(d.distance) over arm - d.distance) / nullif(max(d.distance) over arm - min(d.distance) over arm, 0), 1)
            end as by_score
        from dense as d
        window arm as (partition by d.space_id)
    ),

    fused as (
        select coalesce(l.chunk_id, d.chunk_id) as chunk_id,
            coalesce(l.by_score, lexical_weight / (rrf_k + l.rank), 0) + coalesce(d.by_score, dense_weight / (rrf_k + d.rank), 0) as score,
            l.rank as lexical_rank, l.score as lexical_score,
            d.rank::int as dense_rank, d.distance as dense_distance, d.plan as dense_plan
        from lexical_share as l
        full join dense_share as d on d.chunk_id = l.chunk_id
    )

    select f.chunk_id, (row_number() over (order by f.score desc, f.chunk_id))::int, f.score,
        f.lexical_rank, f.lexical_score, f.dense_rank, f.dense_distance, f.dense_plan, collection_ids
    from fused as f
    order by f.score desc, f.chunk_id;
end
$$;

comment on function pgrag._fuse(text, text[], halfvec, jsonb, int, int, jsonb, text, boolean, text, int) is
'Runs the arms of a search and fuses their rankings, by reciprocal ranks or by scores: every candidate of every arm, best first, ties by chunk_id; place from 1; searched: the ids of the collections. least_depth: candidates of each arm at the least. The other arguments and errors as in pgrag.search.';
