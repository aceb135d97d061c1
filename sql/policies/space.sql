-- Who sees a space: whoever sees a collection that uses it.
select pgrag._private_policies('space', written => true);
drop policy if exists read on pgrag.space;
create policy read on pgrag.space for select to pgrag_reader
using (exists (select from pgrag.collection_space as c where c.space_id = space.space_id));
comment on policy read on pgrag.space is
'Visible with a collection that uses it.';
