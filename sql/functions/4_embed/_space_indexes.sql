-- Lists the approximate indexes of a space.
create or replace function pgrag._space_indexes(space_id int, out valid text, out invalid text[], out bytes bigint) returns record
language sql stable parallel safe security invoker
begin atomic
select min(c.relname) filter (where i.indisvalid) as valid,
    coalesce(array_agg(c.relname::text order by c.relname) filter (where not i.indisvalid), '{}') as invalid,
    coalesce(sum(pg_relation_size(c.oid)), 0)::bigint as bytes
from pg_index as i
inner join pg_class as c on c.oid = i.indexrelid
inner join pg_am as a on a.oid = c.relam and a.amname in ('hnsw', 'ivfflat')
where i.indrelid = to_regclass(format('pgrag.embedding_%s', space_id));
end;

comment on function pgrag._space_indexes(int) is
'Lists the approximate indexes of a space: the name of the valid one (NULL: none is), the names of those that a stopped or running build left, and the bytes of all.';
