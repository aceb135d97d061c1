-- Who sees a collection: whoever sees a chunk in it.
select pgrag._private_policies('collection', written => true);
drop policy if exists read on pgrag.collection;
create policy read on pgrag.collection for select to pgrag_reader
using ((select coalesce(sum(s.chunks), 0) from pgrag.corpus_stat as s where s.collection_id = collection.collection_id) > 0);
comment on policy read on pgrag.collection is
'A collection is visible where a chunk of it is; else it is as if it did not exist.';
