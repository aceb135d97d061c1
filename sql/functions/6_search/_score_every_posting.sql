-- Scores the chunks of a collection by every posting of the query's terms, and returns the best that pass the checks.
create or replace function pgrag._score_every_posting(
    collection_id int, terms bigint[], mosts float8[], average float8, k1 float8, b float8, k int, acl_ids int[],
    required tsquery, excluded tsquery, filter jsonb
) returns table (chunk_id bigint, document_id bigint, points float8)
language plpgsql stable parallel safe security invoker
set search_path = pg_catalog, pg_temp
set jit = off
as $$
declare
    allowed bigint[] := pgrag._narrow_filter(collection_id, filter);
    -- What a candidate must pass, best first, until k have; without any, the first k are the answer.
    checks text := concat(
        case when required is not null then ' and c.tsv @@ $9' end,
        case when excluded is not null then ' and not c.tsv @@ $10' end,
        case when filter <> '{}' and allowed is null then
            ' and exists (
                select from pgrag.document as d
                where d.collection_id = c.collection_id and d.document_id = c.document_id and d.metadata @> $11
            )'
        end
    );
begin
    -- Dynamic, so that it is planned with the arrays known: estimated well, and hashed where they filter.
    return query execute format($sql$
        with weight as materialized (
            select u.term, u.most from unnest($2, $3) as u (term, most)
        ),

        run as materialized (
            select p.term, p.sign, p.entries
            from pgrag.posting as p
            where p.collection_id = $1 and p.term = any($2) %1$s
        ),

        netted as materialized (
            select distinct r.term from run as r where r.sign < 0
        ),

        hit as (
            select w.most, unnest(r.entries) as entry
            from run as r
            inner join weight as w on w.term = r.term
            where r.term not in (select n.term from netted as n)
            union all
            select n.most, n.entry
            from (
                select w.most, r.term, r.sign, unnest(r.entries) as entry
                from run as r
                inner join weight as w on w.term = r.term
                where r.term in (select n.term from netted as n)
            ) as n
            group by n.most, n.term, n.entry
            having sum(n.sign) > 0
        ),

        scored as (
            select h.entry >> 23 as chunk_id, sum(pgrag._posting_points(h.entry, h.most, $4, $5, $6)) as points
            from hit as h
            group by h.entry >> 23
            having sum(pgrag._posting_points(h.entry, h.most, $4, $5, $6)) >= 1
        ),

        candidate as (
            select s.chunk_id, s.points from scored as s %2$s order by s.points desc, s.chunk_id %4$s
        )

        select s.chunk_id, c.document_id, s.points
        from candidate as s
        cross join lateral (
            select c.document_id
            from pgrag.chunk as c
            where c.collection_id = $1 and c.chunk_id = s.chunk_id %3$s
            limit 1
        ) as c
        order by s.points desc, s.chunk_id
        limit $7
        $sql$,
        case when acl_ids is not null then 'and p.acl_id = any($8)' end,
        case when allowed is not null then 'where s.chunk_id = any($12)' end,
        checks, case when checks = '' then 'limit $7' end
    ) using collection_id, terms, mosts, average, k1, b, k, acl_ids, required, excluded, filter, allowed;
end
$$;

comment on function pgrag._score_every_posting(int, bigint[], float8[], float8, float8, float8, int, int[], tsquery, tsquery, jsonb) is
'Scores the chunks of a collection by every posting of the query''s terms, and returns the best k that pass the checks, unordered.
mosts: what each term can give at most, in points. required, excluded: NULL where there is none.';
