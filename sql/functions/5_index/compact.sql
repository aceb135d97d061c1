-- Merges the runs of the posting log and folds the other logs.
create or replace function pgrag.compact(max_runs int default null) returns bigint
language plpgsql volatile parallel unsafe security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    merged bigint;
begin
    if max_runs < 2 then
        raise exception 'max_runs must be at least 2, got %', max_runs
            using errcode = 'RG001', hint = 'Leave it out to merge everything.';
    end if;
    -- One compactor at a time; readers and writers don't wait. Deleting and inserting are one statement, since
    -- what a second statement would see could have changed.
    if not pg_try_advisory_xact_lock(hashtextextended('pgrag.compact', 0)) then
        return 0;
    end if;

    with d as (delete from pgrag.access_change returning n)
    insert into pgrag.access_change (n) select sum(d.n) from d having count(*) > 0;

    with d as (delete from pgrag.corpus_stat returning *)
    insert into pgrag.corpus_stat (collection_id, acl_id, chunks, lexemes)
    select d.collection_id, d.acl_id, sum(d.chunks), sum(d.lexemes)
    from d
    group by d.collection_id, d.acl_id
    having sum(d.chunks) <> 0 or sum(d.lexemes) <> 0;

    delete from pgrag.lexeme as l
    using (
        select m.ctid as place, row_number() over (partition by m.collection_id, m.acl_id, m.lexeme order by m.ctid) as nth
        from pgrag.lexeme as m
    ) as twin
    where l.ctid = twin.place and twin.nth > 1;

    with due as materialized (
        -- A full run is left alone, unless a negative one may take something out of it.
        select p.collection_id, p.term, p.acl_id, bool_or(p.sign = -1) as netted, count(*) as runs
        from pgrag.posting as p
        group by p.collection_id, p.term, p.acl_id
        having count(*) filter (where p.n < 4096) > 1 or (bool_or(p.sign = -1) and count(*) > 1)
    ),

    chosen as materialized (
        select u.collection_id, u.term, u.acl_id, u.netted
        from (
            select d.*, sum(d.runs) over (order by d.runs desc, d.collection_id, d.term, d.acl_id) - d.runs as before
            from due as d
        ) as u
        where max_runs is null or u.before < max_runs
    ),

    d as (
        delete from pgrag.posting as p
        using chosen as c
        where p.collection_id = c.collection_id and p.term = c.term and p.acl_id = c.acl_id and (c.netted or p.n < 4096)
        returning p.*
    ),

    flat as (
        select d.collection_id, d.term, d.acl_id, unnest(d.chunk_ids) as chunk_id, d.sign,
            unnest(d.tfs) as tf, unnest(d.lengths) as length
        from d
    ),

    net as (
        select f.collection_id, f.term, f.acl_id, f.chunk_id, sign(sum(f.sign))::smallint as sign,
            abs(sum(f.sign * f.tf))::smallint as tf, abs(sum(f.sign * f.length))::smallint as length,
            row_number() over (
                partition by f.collection_id, f.term, f.acl_id, sign(sum(f.sign)) order by f.chunk_id
            ) as place
        from flat as f
        group by f.collection_id, f.term, f.acl_id, f.chunk_id
        having sum(f.sign) <> 0
    )

    insert into pgrag.posting (
        term, collection_id, acl_id, n, sign, max_tf, min_length, chunk_ids, tfs, lengths
    )
    select n.term, n.collection_id, n.acl_id, count(*), n.sign, max(n.tf), min(n.length),
        array_agg(n.chunk_id order by n.chunk_id),
        array_agg(n.tf order by n.chunk_id),
        array_agg(n.length order by n.chunk_id)
    from net as n
    group by n.collection_id, n.term, n.acl_id, n.sign, (n.place - 1) / 8192;

    select count(*) into merged from (
        select from pgrag.posting as p
        group by p.collection_id, p.term, p.acl_id
        having count(*) filter (where p.n < 4096) > 1 or (bool_or(p.sign = -1) and count(*) > 1)
    ) as left_over;
    return merged;
end
$$;

comment on function pgrag.compact(int) is
'Merges the runs of the posting log and folds the other logs; returns how many terms still have more than one run to merge.
max_runs: merge about so many runs, those of the terms with most runs first; NULL: all. Pairs whose signs cancel go; a lone negative stays. Readers and writers never wait; a second compactor returns 0 at once. Definer; for members of pgrag_writer and pgrag_owner. Error RG001: max_runs below 2.';
