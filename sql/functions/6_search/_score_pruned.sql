-- Scores the chunks of a collection that can be among the best k, by MaxScore: the rest is not scored.
-- The chunks that are best by the rarest terms are looked up in the others: their k-th score is a threshold. Then, under
-- each ACL, terms are summed from the rarest on, as many as are needed so that the rest together stay below it: only a chunk
-- that holds one of these can be among the best, and only what such chunks have in the rest is added. Turtle and Flood 1995.
create or replace function pgrag._score_pruned(
    collection_id int, terms bigint[], mosts float8[], bounds float8[], postings bigint[], netted boolean[],
    average float8, k1 float8, b float8, k int, acl_ids int[]
) returns table (chunk_id bigint, document_id bigint, points float8)
language plpgsql stable parallel safe security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_nestloop = off
set enable_mergejoin = off
set jit = off
as $$
#variable_conflict use_column
declare
    -- Postings of the rarest terms that are read for the threshold, at most.
    sampled constant bigint := 4000;
    -- Chunks that are looked up for it.
    tried constant int := greatest(200, k);
    -- A chunk has one place in the log only where nothing was taken back.
    may_look_up constant boolean := k <= 200 and not true = any(netted);
    many constant int := cardinality(terms);
    -- What the terms from each one on can give together, and 0 behind the last.
    ahead constant float8[] := array(
        select sum(o.bound) over (order by o.place desc) from unnest(bounds) with ordinality as o (bound, place) order by o.place
    ) || 0::float8;
    last int := 1;
    seen bigint := postings[1];
    threshold float8 := 0;
    best bigint[];
    best_points float8[];
    best_acl_ids int[];
    found bigint[];
    found_points float8[];
begin
    while last < many and seen + postings[last + 1] <= sampled loop
        last := last + 1;
        seen := seen + postings[last];
    end loop;

    if last < many or (many = 1 and may_look_up) then
        -- A term alone has a chunk once, unless it was taken back.
        if last = 1 and may_look_up then
            select array_agg(t.chunk_id), array_agg(t.points), array_agg(t.acl_id) into best, best_points, best_acl_ids
            from (
                select h.entry >> 23 as chunk_id, h.acl_id, pgrag._posting_points(h.entry, mosts[1], average, k1, b) as points
                from (
                    select r.acl_id, unnest(r.entries) as entry from pgrag._runs(collection_id, terms[:1], acl_ids) as r
                ) as h
                order by 3 desc, 1
                limit tried
            ) as t;
        else
            select array_agg(t.chunk_id), array_agg(t.points), array_agg(t.acl_id) into best, best_points, best_acl_ids
            from (
                select h.entry >> 23 as chunk_id, sum(pgrag._posting_points(h.entry, h.most, average, k1, b)) as points,
                    h.acl_id
                from (
                    select w.most * r.sign as most, r.acl_id, unnest(r.entries) as entry
                    from pgrag._runs(collection_id, terms[:last], acl_ids) as r
                    inner join unnest(terms[:last], mosts[:last]) as w (term, most) on w.term = r.term
                ) as h
                group by h.entry >> 23, h.acl_id
                order by 2 desc, 1
                limit tried
            ) as t;
        end if;
        threshold := coalesce(best_points[k], 0);

        if may_look_up and last < many then
            with best as materialized (
                select u.chunk_id, u.points, u.acl_id
                from unnest(best, best_points, best_acl_ids) as u (chunk_id, points, acl_id)
            ),

            under_acl as materialized (
                select s.acl_id, array_agg(s.chunk_id order by s.chunk_id) as chunk_ids from best as s group by s.acl_id
            ),

            added as (
                select h.chunk_id, sum(pgrag._posting_points(h.entry, w.most, average, k1, b)) as points
                from (
                    select s.chunk_id, r.term, r.entries[width_bucket(s.chunk_id << 23 | 8388607, r.entries)] as entry
                    from pgrag._runs(collection_id, terms[last + 1:], acl_ids) as r
                    inner join under_acl as u on u.acl_id = r.acl_id
                    -- Those between the first and the last chunk of the run.
                    cross join lateral unnest(u.chunk_ids[
                        width_bucket((r.entries[1] >> 23) - 1, u.chunk_ids) + 1:width_bucket(r.entries[r.n] >> 23, u.chunk_ids)
                    ]) as s (chunk_id)
                ) as h
                inner join unnest(terms[last + 1:], mosts[last + 1:]) as w (term, most) on w.term = h.term
                where h.entry >> 23 = h.chunk_id
                group by h.chunk_id
            )

            select array_agg(f.chunk_id order by f.points desc, f.chunk_id), array_agg(f.points order by f.points desc, f.chunk_id)
            into found, found_points
            from (
                select s.chunk_id, s.points + coalesce(a.points, 0) as points
                from best as s
                left join added as a on a.chunk_id = s.chunk_id
            ) as f;
            threshold := greatest(threshold, found_points[k]);
        end if;
    end if;

    -- Where no other chunk can reach it, those that were looked up are the answer, and of one word those that are its best.
    if many = 1 and may_look_up then
        found := best;
        found_points := best_points;
    elsif not (
        may_look_up and last < many
        and ahead[last + 1] < threshold and coalesce(best_points[tried], 0) + ahead[last + 1] < threshold
    ) then
        with run as materialized (
            select r.acl_id, w.place, w.most * r.sign as most, r.entries,
                w.most * pgrag._bm25_bound(r.max_tf, r.min_ratio, average, k1, b) + 2 as bound
            from pgrag._runs(collection_id, terms, acl_ids) as r
            inner join unnest(terms, mosts) with ordinality as w (term, most, place) on w.term = r.term
        ),

        -- What the terms from each one on can give together, under each ACL.
        reach as (
            select c.acl_id, c.place, c.bound, sum(c.bound) over (partition by c.acl_id order by c.place desc) as points
            from (select r.acl_id, r.place, max(r.bound) as bound from run as r where r.most > 0 group by r.acl_id, r.place) as c
        ),

        cut as materialized (
            select r.acl_id, max(r.place) filter (where r.points >= threshold) as last,
                coalesce(sum(r.bound) filter (where r.points < threshold), 0) as rest
            from reach as r
            group by r.acl_id
            having max(r.points) >= threshold
        ),

        -- A chunk that is there has a point at least.
        candidate as materialized (
            select h.entry >> 23 as chunk_id, sum(pgrag._posting_points(h.entry, h.most, average, k1, b)) as points
            from (
                select r.most, r.acl_id, c.rest, unnest(r.entries) as entry
                from run as r
                inner join cut as c on c.acl_id = r.acl_id and r.place <= c.last
            ) as h
            group by h.entry >> 23, h.acl_id
            having sum(pgrag._posting_points(h.entry, h.most, average, k1, b)) >= greatest(1, threshold - min(h.rest))
        ),

        added as (
            select a.chunk_id, sum(a.points) as points
            from (
                select c.chunk_id, sum(pgrag._posting_points(h.entry, h.most, average, k1, b)) as points
                from (
                    select r.most, r.acl_id, unnest(r.entries) as entry
                    from run as r
                    inner join cut as c on c.acl_id = r.acl_id and r.place > c.last
                ) as h
                inner join candidate as c on c.chunk_id = h.entry >> 23
                group by c.chunk_id, h.acl_id
            ) as a
            group by a.chunk_id
        ),

        best as (
            select c.chunk_id, c.points + coalesce(a.points, 0) as points
            from candidate as c
            left join added as a on a.chunk_id = c.chunk_id
            order by 2 desc, c.chunk_id
            limit k
        )

        select array_agg(s.chunk_id), array_agg(s.points) into found, found_points from best as s;
    end if;

    return query
    select s.chunk_id, c.document_id, s.points
    from unnest(found[:k], found_points[:k]) as s (chunk_id, points)
    cross join lateral (
        select c.document_id
        from pgrag.chunk as c
        where c.collection_id = _score_pruned.collection_id and c.chunk_id = s.chunk_id
        limit 1
    ) as c;
end
$$;

comment on function pgrag._score_pruned(int, bigint[], float8[], float8[], bigint[], boolean[], float8, float8, float8, int, int[]) is
'Scores the chunks of a collection that can be among the best k, and returns those k, unordered: the same chunks and points that scoring every posting gives.
terms: from the fewest postings on; mosts, bounds: what each can give at most, in points, and what its runs can give; postings: how many it has, negative ones too; netted: whether it has negative ones, of a chunk at most 256 under an ACL, so that sums stay exact.';
