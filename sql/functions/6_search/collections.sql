-- Lists the collections in which the caller may see something.
create or replace function pgrag.collections()
returns table (name text, documents bigint, chunks bigint, space text)
language sql stable parallel safe security invoker
begin atomic
select c.name, d.documents, c.chunks, s.name as space
from pgrag._visible_collections(null) as c
cross join lateral (
    select count(*) as documents from pgrag.document as d where d.collection_id = c.collection_id
) as d
left join pgrag.space as s on s.space_id = c.active_space_id
order by c.name;
end;

comment on function pgrag.collections() is
'Lists the collections in which the caller may see something, by name: visible documents, visible chunks, and the space that answers dense search (NULL: search is lexical). No caller, no rows.';
