-- Lists the approximate indexes of a space, and says in what state that is.
create or replace function pgrag._space_indexes(
    of_space pgrag.space, out state text, out valid text, out invalid text[], out bytes bigint
) returns record
language sql stable parallel safe security invoker
begin atomic
select
    case
        when of_space.index_kind = 'none' then 'none'
        when bool_or(i.indisvalid) then 'valid'
        when bool_or(not i.indisvalid) then 'invalid'
        else 'missing'
    end as state,
    min(c.relname) filter (where i.indisvalid) as valid,
    coalesce(array_agg(c.relname::text order by c.relname) filter (where not i.indisvalid), '{}') as invalid,
    coalesce(sum(pg_relation_size(c.oid)), 0)::bigint as bytes
from pg_index as i
inner join pg_class as c on c.oid = i.indexrelid
inner join pg_am as a on a.oid = c.relam and a.amname in ('hnsw', 'ivfflat')
where i.indrelid = to_regclass(format('pgrag.embedding_%s', of_space.space_id));
end;

comment on function pgrag._space_indexes(pgrag.space) is
'Lists the approximate indexes of a space, and says in what state that is: `valid`, `invalid` (a build was stopped, or runs), `missing`, or `none` where the space has no such index. Also the name of the valid one (NULL: none is), the names of those that a stopped or running build left, and the bytes of all.';
