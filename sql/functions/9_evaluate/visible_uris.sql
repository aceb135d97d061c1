-- Tells which of some documents the caller may read.
create or replace function pgrag.visible_uris(collection text, uris text[]) returns text[]
language sql stable parallel safe security invoker
begin atomic
select coalesce(array_agg(d.uri order by d.uri collate "C"), '{}')
from pgrag.collection as c
inner join pgrag.document as d on d.collection_id = c.collection_id
where c.name = visible_uris.collection and d.uri = any(visible_uris.uris);
end;

comment on function pgrag.visible_uris(text, text[]) is
'Tells which of some documents the caller may read: their uris, sorted. Those that row-level security hides are left out like those that don''t exist, and so is everything of an unknown collection.';
