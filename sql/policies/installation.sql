-- Who sees what is installed: every member of a pgrag role.
select pgrag._private_policies('installation', written => false);
drop policy if exists read on pgrag.installation;
create policy read on pgrag.installation for select to pgrag_reader, pgrag_writer
using (true);
comment on policy read on pgrag.installation is
'Version and revision are no secret.';
