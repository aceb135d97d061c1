-- Ranks the visible vectors of a space by distance: exactly where that is cheaper, else through the index.
create or replace function pgrag._nearest(
    of_space pgrag.space, collection_ids int[], embedding halfvec, k int, filter jsonb, visible bigint, exact boolean
) returns table (chunk_id bigint, document_id bigint, distance float8, plan text)
language plpgsql stable parallel unsafe security invoker
set search_path from current
set jit = off
-- So that these are put back, whatever happens.
set enable_sort = on
set enable_indexscan = on
set enable_seqscan = on
as $$
declare
    stored text := format('pgrag.%I', 'embedding_' || of_space.space_id);
    near record;
    vectors float8 := (select greatest(c.reltuples, visible, 1) from pg_class as c where c.oid = stored::regclass);
    -- Who sees most of the vectors finds them quicker among all.
    acl_ids int[] := case when visible < 0.5 * vectors then pgrag._few_acl_ids() end;
    effort int := 0;
    candidates int;
    enough int;
    why text;
    allowed bigint[];
    near_ids bigint[];
    distances float8[];
    how text;
    through_index boolean := false;
    setting record;
    kept jsonb := '{}';
    by_index text;
    code bit varying;
    look int;
    looks int[];
begin
    select n.distance, n.index_order into near from pgrag._nearness(of_space) as n;
    if filter <> '{}' then
        -- Of all collections or of none: where one has too many, candidates of all are checked. `offset 0`: it is asked once each.
        select case when bool_and(n.ids is not null) then coalesce(array_agg(i.id) filter (where i.id is not null), '{}') end into allowed
        from unnest(collection_ids) as c (id)
        cross join lateral (select pgrag._narrow_filter(c.id, filter) as ids offset 0) as n
        left join lateral unnest(n.ids) as i (id) on true;
    end if;
    if not exact and allowed is null then
        select e.effort, e.candidates, e.enough, e.reason into effort, candidates, enough, why
        from pgrag._index_effort(of_space, k, visible, vectors, acl_ids is not null, filter <> '{}') as e;
        how := format('exact over %s passages: %s', visible, why);
    end if;
    if effort > 0 then
        perform set_config('enable_sort', 'off', true);
        for setting in
            select * from (values
                ('hnsw.ef_search', effort::text, '40', of_space.index_kind = 'hnsw'),
                ('hnsw.iterative_scan', 'off', 'off', of_space.index_kind = 'hnsw'),
                ('ivfflat.probes', effort::text, '1', of_space.index_kind = 'ivfflat'),
                ('ivfflat.iterative_scan', 'off', 'off', of_space.index_kind = 'ivfflat')
            ) as s (name, wanted, usual, needed)
            where s.needed
        loop
            kept := kept || jsonb_build_object(setting.name, coalesce(nullif(current_setting(setting.name, true), ''), setting.usual));
            perform set_config(setting.name, setting.wanted, true);
        end loop;
        -- No join beside the index: near rows first, the rest of the row afterwards. All that the index gives are ranked exactly.
        by_index := format(
            'with near as materialized (
                select e.collection_id, e.chunk_id, %2$s as distance
                from %1$s as e
                where e.collection_id = any($3)
                order by %3$s
                limit $4
            )
            select array_agg(n.chunk_id order by n.distance, n.chunk_id), array_agg(n.distance order by n.distance, n.chunk_id)
            from near as n
            %4$s',
            stored, near.distance, near.index_order,
            case when filter <> '{}' then
                'inner join pgrag.chunk as c on c.collection_id = n.collection_id and c.chunk_id = n.chunk_id
                inner join pgrag.document as d on d.collection_id = c.collection_id and d.document_id = c.document_id
                where d.metadata @> $5'
            end
        );
        if of_space."precision" = 'bit' then
            code := pgrag._code(of_space.space_id, embedding::vector);
        end if;
        -- A cheap look first: who sees less than a quarter of what was to be expected of the very nearest won't see enough of those behind them.
        looks := array[effort];
        if of_space.index_kind = 'hnsw' and code is null and filter = '{}' and effort >= 200 and visible < 0.9 * vectors then
            looks := array[60, effort];
        end if;
        foreach look in array looks loop
            if of_space.index_kind = 'hnsw' then
                perform set_config('hnsw.ef_search', look::text, true);
            end if;
            execute by_index into near_ids, distances
            using embedding, code, collection_ids, case look when effort then candidates else look end, filter;
            exit when coalesce(cardinality(near_ids), 0) < 0.25 * look * visible / vectors and filter = '{}';
        end loop;
        perform set_config('enable_sort', 'on', true);
        perform set_config(s.key, s.value, true) from jsonb_each_text(kept) as s;
        how := format('%s: %s', of_space.index_kind, why);
        through_index := look = effort and coalesce(cardinality(near_ids), 0) >= enough;
        -- That the index gave too little tells what is hidden near the query, so only those are told who see everything.
        if not through_index and (pg_has_role(current_user, 'pgrag_writer', 'usage') or pg_has_role(current_user, 'pgrag_owner', 'usage')) then
            how := format('exact over %s passages: %s found only %s', visible, of_space.index_kind, coalesce(cardinality(near_ids), 0));
        end if;
    end if;
    if not through_index then
        -- `offset 0` keeps the index for distances out of it. Those of some ACLs are read in the order in which they lie, which an index scan,
        -- that the planner takes for cheaper, does not.
        perform set_config('enable_indexscan', 'off', true);
        if acl_ids is not null or allowed is not null then
            perform set_config('enable_seqscan', 'off', true);
        end if;
        execute format(
            'select array_agg(m.chunk_id order by m.distance, m.chunk_id), array_agg(m.distance order by m.distance, m.chunk_id)
            from (
                select m.chunk_id, m.distance
                from (
                    select o.collection_id, o.chunk_id, o.distance
                    from (
                        select e.collection_id, e.chunk_id, %2$s as distance
                        from %1$s as e
                        where e.collection_id = any($2) %3$s %4$s
                        offset 0
                    ) as o
                    order by o.distance, o.chunk_id
                ) as m
                %5$s
                order by m.distance, m.chunk_id
                limit $5
            ) as m',
            stored, near.distance,
            case when acl_ids is not null then 'and e.acl_id = any($3)' end,
            case when allowed is not null then 'and e.chunk_id = any($4)' end,
            -- Asked nearest first, until there are enough: the order is made below the join.
            case when filter <> '{}' and allowed is null then
                'cross join lateral (
                    select from pgrag.chunk as c
                    inner join pgrag.document as d on d.collection_id = c.collection_id and d.document_id = c.document_id
                    where c.collection_id = m.collection_id and c.chunk_id = m.chunk_id and d.metadata @> $6
                    limit 1
                ) as c'
            end
        ) into near_ids, distances using embedding, collection_ids, acl_ids, allowed, k, filter;
        perform set_config('enable_indexscan', 'on', true);
        perform set_config('enable_seqscan', 'on', true);
        how := coalesce(how, format('exact over %s passages', coalesce(cardinality(allowed), visible)));
    end if;
    return query
    select n.chunk_id, c.document_id, n.distance, how
    from unnest(near_ids[:k], distances[:k]) as n (chunk_id, distance)
    cross join lateral (
        select h.document_id from pgrag.chunk as h
        where h.collection_id = any(collection_ids) and h.chunk_id = n.chunk_id
        limit 1
    ) as c;
end
$$;

comment on function pgrag._nearest(pgrag.space, int[], halfvec, int, jsonb, bigint, boolean) is
'Ranks the visible vectors of a space by cosine distance: exactly where that is cheaper, else through the index; returns the nearest k, unordered.
visible: how many passages the caller may see in these collections. What the index gives is enough where more than k of it are visible and pass the filter, since what it passed over is farther; else, as where the nearest are hidden, all visible vectors are compared. Settings of the index are put back on every path; setting them is what a parallel query may not, hence unsafe. plan: how it was decided to search, with a count of visible rows only; where the index then gave too little it says so to members of pgrag_writer and pgrag_owner alone.';
