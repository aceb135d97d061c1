-- Who sees the rotation of a space: whoever sees the space.
select pgrag._private_policies('space_axis', written => true);
drop policy if exists read on pgrag.space_axis;
create policy read on pgrag.space_axis for select to pgrag_reader
using (space_id in (select s.space_id from pgrag.space as s));
comment on policy read on pgrag.space_axis is
'Visible with the space.';
