-- Merges the runs of the posting log, part by part, and folds the other logs.
create or replace function pgrag.compact(max_runs int default null) returns bigint
language plpgsql volatile parallel unsafe security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    -- Runs that one statement looks at: it holds their postings in memory.
    part constant int := least(20000, max_runs);
    first record;
    last record;
    seen bigint := 0;
    merged bigint := 0;
begin
    if max_runs < 2 then
        raise exception 'max_runs must be at least 2, got %', max_runs
            using errcode = 'RG001', hint = 'Leave it out to merge everything.';
    end if;
    -- One compactor at a time; readers and writers don't wait.
    if not pg_try_advisory_xact_lock(hashtextextended('pgrag.compact', 0)) then
        return 0;
    end if;

    select c.last_collection_id as collection_id, c.last_term as term, c.last_acl_id as acl_id into first
    from pgrag.compaction as c
    where max_runs is not null;
    if not found then
        if not pgrag._fold_logs() and max_runs is not null then
            return 0;
        end if;
        select -1 as collection_id, 0::bigint as term, 0 as acl_id into first;
    end if;
    delete from pgrag.compaction;

    loop
        -- Up to a last key, so that no term under an ACL is divided.
        select p.collection_id, p.term, p.acl_id, p.nth into last
        from (
            select o.collection_id, o.term, o.acl_id, row_number() over (order by o.collection_id, o.term, o.acl_id) as nth
            from pgrag.posting as o
            where (o.collection_id, o.term, o.acl_id) > (first.collection_id, first.term, first.acl_id)
            order by o.collection_id, o.term, o.acl_id
            limit part
        ) as p
        order by p.nth desc
        limit 1;
        if not found then
            return 0;
        end if;
        merged := merged + pgrag._merge_runs(
            first.collection_id, first.term, first.acl_id, last.collection_id, last.term, last.acl_id
        );
        seen := seen + last.nth;
        first := last;
        exit when merged >= max_runs or (seen >= 200000 and max_runs is not null);
    end loop;
    insert into pgrag.compaction (last_collection_id, last_term, last_acl_id)
    values (first.collection_id, first.term, first.acl_id);
    return seen;
end
$$;

comment on function pgrag.compact(int) is
'Merges the runs of the posting log, part by part in the order of its index, and folds the other logs at the beginning.
max_runs: merge about so many runs and keep the place, for the next call; NULL: everything, from the beginning. Returns the number of runs that it looked at; 0 at the end of the log, after which the next call begins anew, and where nothing was written since. So call it, each time in a transaction of its own, until it returns 0.
Short runs of a term under an ACL become one, a deletion takes its posting out of the run that holds it, full runs are left alone; a lone negative stays. Readers and writers never wait; a second compactor returns 0 at once. Stopped at any point, nothing is lost or counted twice. What the index is due afterwards says pgrag._posting_upkeep.
Definer; for members of pgrag_writer and pgrag_owner. Error RG001: max_runs below 2.';
