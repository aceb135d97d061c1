-- Lists the statements that bring the index of the posting log back to its size, where it has outgrown its rows.
create or replace function pgrag._posting_upkeep() returns setof text
language sql stable parallel safe security invoker
begin atomic
with log as (
    select c.oid, c.reltuples
    from pg_class as c
    where c.relnamespace = 'pgrag'::regnamespace and c.relname = 'posting' and pg_has_role(c.relowner, 'usage')
),

index_of_log as (
    select i.oid, i.relname, x.indisvalid, l.oid as log_oid, l.reltuples
    from log as l
    inner join pg_index as x on x.indrelid = l.oid
    inner join pg_class as i on i.oid = x.indexrelid
)

-- Left by a rebuild that was cut off; while one goes on, it holds this lock.
select format('drop index concurrently if exists pgrag.%I', i.relname)
from index_of_log as i
where i.relname <> 'posting_term_idx' and not i.indisvalid and not exists (
    select from pg_locks as k where k.relation = i.log_oid and k.mode = 'ShareUpdateExclusiveLock' and k.granted
)
union all
-- An entry takes 36 bytes, and a page made anew is full to 90 %.
select format('reindex index concurrently pgrag.%I', i.relname)
from index_of_log as i
where i.relname = 'posting_term_idx' and i.reltuples >= 0
    and pg_relation_size(i.oid) > 1048576 + 1.25 * (36 / 0.9) * i.reltuples;
end;

comment on function pgrag._posting_upkeep() is
'Lists the statements that bring the index of the posting log back to its size, in their order; none where it is at most about a quarter larger than one made anew, or the caller is no member of pgrag_owner.
To be run one by one outside a transaction, after compact() came to its end: neither readers nor writers wait for them. Compaction keeps the rows few, but pages of the index that batches of changes made split never join again.';
