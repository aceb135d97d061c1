-- Who sees a collection: whoever sees a chunk in it.
select pgrag._private_policies('collection', written => true);
drop policy if exists read on pgrag.collection;
-- No ACL nets below zero, so one that nets above is enough, and the first is found early. Where there are many ACLs and the
-- caller has few of them, these are an index condition.
create policy read on pgrag.collection for select to pgrag_reader
using (
    case
        when not (select pgrag._lists_acls()) then exists (
            select from pgrag.corpus_stat as s
            where s.collection_id = collection.collection_id
            group by s.acl_id
            having sum(s.chunks) > 0
        )
        else exists (
            select from pgrag.corpus_stat as s
            where s.collection_id = collection.collection_id and s.acl_id = any((select pgrag._few_acl_ids())::int[])
            having sum(s.chunks) > 0
        )
    end
);
comment on policy read on pgrag.collection is
'A collection is visible where a chunk of it is; else it is as if it did not exist.';
