-- Ranks the visible vectors of a space by distance: exactly where that is cheaper, else through the index.
create or replace function pgrag._nearest(
    space_id int, collection_ids int[], embedding halfvec, k int, filter jsonb, visible bigint, exact boolean
) returns table (chunk_id bigint, document_id bigint, distance float8, plan text)
language plpgsql stable parallel unsafe security invoker
set search_path from current
as $$
declare
    vectors text := format('pgrag.%I', 'embedding_' || space_id);
    acl_ids int[] := pgrag._few_acl_ids();
    allowed bigint[];
    everything bigint := (select greatest(c.reltuples, 0) from pg_class as c where c.oid = vectors::regclass);
    share float8 := least(1, visible / greatest(everything, visible, 1)::float8);
    candidates int := greatest(40, 2 * k);
    kept text[];
    near_ids bigint[];
    distances float8[];
begin
    if filter <> '{}' and cardinality(collection_ids) = 1 then
        allowed := pgrag._narrow_filter(collection_ids[1], filter);
    end if;
    -- About 1.5 microseconds a vector exactly; about 8 a vector that the index visits, of which it needs one in
    -- `share`. An iterative scan gives up before it has seen the rare row, so rare rows are always scanned.
    if not exact and filter = '{}' and visible > 5000 and share >= 0.05
        and 1.5 * visible > 8 * candidates / share
    then
        kept := array[
            current_setting('hnsw.ef_search', true),
            current_setting('hnsw.iterative_scan', true),
            current_setting('hnsw.max_scan_tuples', true)
        ];
        perform set_config('hnsw.ef_search', least(1000, candidates * 2)::text, true);
        perform set_config('hnsw.iterative_scan', 'relaxed_order', true);
        perform set_config('hnsw.max_scan_tuples', greatest(20000, least(1000000, ceil(20 * candidates / share)))::text, true);
        -- No join beside the index: near rows first, in order, the rest of the row afterwards.
        execute format(
            'with near as materialized (
                select e.chunk_id, e.embedding operator(%2$s.<=>) $1 as distance
                from %1$s as e
                where e.collection_id = any($2)
                order by e.embedding operator(%2$s.<=>) $1
                limit $3
            )
            select array_agg(n.chunk_id order by n.distance, n.chunk_id), array_agg(n.distance order by n.distance, n.chunk_id)
            from near as n',
            vectors, pgrag._vector_schema()
        ) into near_ids, distances using embedding, collection_ids, candidates;
        perform set_config('hnsw.ef_search', coalesce(kept[1], '40'), true);
        perform set_config('hnsw.iterative_scan', coalesce(kept[2], 'off'), true);
        perform set_config('hnsw.max_scan_tuples', coalesce(kept[3], '20000'), true);
        if cardinality(near_ids) >= least(k, visible) then
            return query
            select n.chunk_id, c.document_id, n.distance, format('hnsw, ef_search %s: cheaper than exact', least(1000, candidates * 2))
            from unnest(near_ids[:k], distances[:k]) as n (chunk_id, distance)
            cross join lateral (
                select h.document_id from pgrag.chunk as h
                where h.collection_id = any(collection_ids) and h.chunk_id = n.chunk_id
                limit 1
            ) as c;
            return;
        end if;
    end if;
    return query execute format(
        'with measured as materialized (
            select e.collection_id, e.chunk_id, e.embedding operator(%2$s.<=>) $1 as distance
            from %1$s as e
            where e.collection_id = any($2) %3$s %4$s
        )
        select m.chunk_id, c.document_id, m.distance, $5
        from (select * from measured as m order by m.distance, m.chunk_id) as m
        cross join lateral (
            select c.document_id from pgrag.chunk as c
            where c.collection_id = m.collection_id and c.chunk_id = m.chunk_id %5$s
            limit 1
        ) as c
        order by m.distance, m.chunk_id
        limit $6',
        vectors, pgrag._vector_schema(),
        case when acl_ids is not null then 'and e.acl_id = any($3)' end,
        case when allowed is not null then 'and e.chunk_id = any($4)' end,
        case when filter <> '{}' and allowed is null then
            'and exists (
                select from pgrag.document as d
                where d.collection_id = c.collection_id and d.document_id = c.document_id and d.metadata @> $7
            )'
        end
    ) using embedding, collection_ids, acl_ids, allowed,
        format('exact over %s vectors', coalesce(cardinality(allowed), visible)), k, filter;
end
$$;

comment on function pgrag._nearest(int, int[], halfvec, int, jsonb, bigint, boolean) is
'Ranks the visible vectors of a space by cosine distance: exactly where that is cheaper, else through the index; returns the nearest k, unordered.
visible: how many vectors the caller may see there. Settings of the index are put back on every path; setting them is what a parallel query may not, hence unsafe. plan counts visible rows only.';
