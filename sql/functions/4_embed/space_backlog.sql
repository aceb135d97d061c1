-- Counts the chunks that each space still lacks a vector for.
create or replace function pgrag.space_backlog(in_collection text default null)
returns table (collection text, space text, kind text, pending bigint)
language sql stable parallel safe security invoker
begin atomic
select c.name, s.name, s.kind, count(q.chunk_id)
from pgrag.collection_space as cs
inner join pgrag.collection as c on c.collection_id = cs.collection_id
inner join pgrag.space as s on s.space_id = cs.space_id
left join pgrag.embed_queue as q on q.collection_id = cs.collection_id and q.space_id = cs.space_id
where in_collection is null or c.name = in_collection
group by c.name, s.name, s.kind
order by c.name, s.name;
end;

comment on function pgrag.space_backlog(text) is
'Counts the chunks that each space still lacks a vector for: one row per collection and space, by name; pending 0 where none is lacking. For members of pgrag_writer and pgrag_owner.';
