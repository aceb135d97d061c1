-- Tells whether the approximate index of a space is built, and of how many lists.
create or replace function pgrag._index_lists(of_space pgrag.space) returns int
language sql stable parallel safe security invoker
begin atomic
select coalesce(substring(array_to_string(c.reloptions, ' ') from 'lists=(\d+)')::int, 1)
from pg_index as i
inner join pg_class as c on c.oid = i.indexrelid
where i.indexrelid = to_regclass(format('pgrag.embedding_%s_%s_idx', of_space.space_id, of_space.index_kind)) and i.indisvalid;
end;

comment on function pgrag._index_lists(pgrag.space) is
'Tells whether the approximate index of a space is built, and of how many lists: 1 for hnsw, NULL where there is no valid one.';
