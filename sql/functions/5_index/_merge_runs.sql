-- Merges the runs of the posting log between two keys.
create or replace function pgrag._merge_runs(
    after_collection_id int, after_term bigint, after_acl_id int, to_collection_id int, to_term bigint, to_acl_id int
) returns bigint
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
set enable_mergejoin = off
set enable_nestloop = off
set enable_seqscan = off
set jit = off
as $$
declare
    -- A run of fewer postings is merged with others.
    short constant int := pgrag._run_length() / 2;
    merged bigint;
begin
    with part as materialized (
        select p.ctid as place, p.collection_id, p.term, p.acl_id, p.sign, p.n, p.entries
        from pgrag.posting as p
        where (p.collection_id, p.term, p.acl_id) > (after_collection_id, after_term, after_acl_id)
            and (p.collection_id, p.term, p.acl_id) <= (to_collection_id, to_term, to_acl_id)
    ),

    due as materialized (
        select p.collection_id, p.term, p.acl_id
        from part as p
        group by p.collection_id, p.term, p.acl_id
        having count(*) filter (where p.n < short) > 1 or (bool_or(p.sign = -1) and count(*) > 1)
    ),

    gone as materialized (
        select p.collection_id, p.term, p.acl_id, unnest(p.entries) as entry
        from part as p
        inner join due as d on d.collection_id = p.collection_id and d.term = p.term and d.acl_id = p.acl_id
        where p.sign = -1
    ),

    -- Short runs, negative ones, and those that hold a posting that went.
    chosen as materialized (
        select p.place
        from part as p
        inner join due as d on d.collection_id = p.collection_id and d.term = p.term and d.acl_id = p.acl_id
        where p.n < short or p.sign = -1
        union
        select u.place
        from (
            select p.place, p.collection_id, p.term, p.acl_id, unnest(p.entries) as entry
            from part as p
            inner join (select distinct g.collection_id, g.term, g.acl_id from gone as g) as k
                on k.collection_id = p.collection_id and k.term = p.term and k.acl_id = p.acl_id
            where p.n >= short and p.sign = 1
        ) as u
        inner join gone as g
            on g.collection_id = u.collection_id and g.term = u.term and g.acl_id = u.acl_id and g.entry = u.entry
    ),

    taken as materialized (
        select p.place, p.collection_id, p.term, p.acl_id, p.sign, p.entries,
            row_number() over (partition by p.collection_id, p.term, p.acl_id order by p.sign desc, p.n desc, p.place) as slot
        from part as p
        where p.place in (select c.place from chosen as c)
    ),

    net as (
        select f.collection_id, f.term, f.acl_id, f.entry, sum(f.sign) as times
        from (select t.collection_id, t.term, t.acl_id, t.sign, unnest(t.entries) as entry from taken as t) as f
        group by f.collection_id, f.term, f.acl_id, f.entry
        having sum(f.sign) <> 0
    ),

    -- Of a posting that is there twice, both stay: nothing is repaired here that check() should find.
    placed as (
        select n.collection_id, n.term, n.acl_id, sign(n.times)::smallint as sign, n.entry,
            row_number() over (partition by n.collection_id, n.term, n.acl_id, sign(n.times) order by n.entry) as place
        from net as n
        cross join lateral generate_series(1, abs(n.times))
    ),

    run as materialized (
        select d.collection_id, d.term, d.acl_id, d.sign, count(*)::int as n, max((d.entry >> 15) & 255)::smallint as max_tf,
            min((d.entry & 32767) / ((d.entry >> 15) & 255))::smallint as min_ratio, array_agg(d.entry order by d.entry) as entries,
            row_number() over (partition by d.collection_id, d.term, d.acl_id order by d.sign desc, min(d.entry)) as slot
        from placed as d
        group by d.collection_id, d.term, d.acl_id, d.sign, (d.place - 1) / pgrag._run_length()
    ),

    -- A run is written over an old one where there is one: the index needs no new entry where the page has room.
    paired as materialized (
        select t.place, r.collection_id, r.term, r.acl_id, r.sign, r.n, r.max_tf, r.min_ratio, r.entries
        from taken as t
        full join run as r
            on r.collection_id = t.collection_id and r.term = t.term and r.acl_id = t.acl_id and r.slot = t.slot
        where (t.sign, t.entries) is distinct from (r.sign, r.entries)
    ),

    kept as (
        update pgrag.posting as p
        set sign = d.sign, n = d.n, max_tf = d.max_tf, min_ratio = d.min_ratio, entries = d.entries
        from paired as d
        where p.ctid = any(array(select d.place from paired as d where d.n is not null)) and p.ctid = d.place
    ),

    dropped as (
        delete from pgrag.posting as p
        where p.ctid = any(array(select d.place from paired as d where d.n is null))
    ),

    made as (
        insert into pgrag.posting (term, collection_id, acl_id, n, sign, max_tf, min_ratio, entries)
        select d.term, d.collection_id, d.acl_id, d.n, d.sign, d.max_tf, d.min_ratio, d.entries
        from paired as d
        where d.place is null
    )

    select count(*) into merged from chosen;
    return merged;
end
$$;

comment on function pgrag._merge_runs(int, bigint, int, int, bigint, int) is
'Merges the runs of the posting log after one key (collection_id, term, acl_id) up to another, inclusive; returns how many runs it took. For compact(), under its lock, so that nobody else changes a run: one statement updates, deletes and inserts, so that it counts what it sees exactly once, whatever others append meanwhile.
A merged run is written over an old one of its key, the largest first: it often stays on its page, and then the index is not written. What comes out as it was is left alone.';
