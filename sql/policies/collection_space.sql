-- Who sees the spaces of a collection: whoever sees the collection.
select pgrag._private_policies('collection_space', written => true);
drop policy if exists read on pgrag.collection_space;
create policy read on pgrag.collection_space for select to pgrag_reader
using (exists (select from pgrag.collection as c where c.collection_id = collection_space.collection_id));
comment on policy read on pgrag.collection_space is
'Visible with the collection.';
