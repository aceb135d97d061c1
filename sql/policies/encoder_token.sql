-- Who sees the token vectors of a space: whoever sees the space.
select pgrag._private_policies('encoder_token', written => true);
drop policy if exists read on pgrag.encoder_token;
create policy read on pgrag.encoder_token for select to pgrag_reader
using (space_id in (select s.space_id from pgrag.space as s));
comment on policy read on pgrag.encoder_token is
'Visible with the space: a table that was fitted on a corpus holds words of that corpus.';
