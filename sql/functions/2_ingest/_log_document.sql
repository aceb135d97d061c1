-- Writes down what happened to documents.
create or replace function pgrag._log_document() returns trigger
language plpgsql volatile parallel unsafe security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if tg_op = 'INSERT' then
        insert into pgrag.document_history (collection_id, document_id, uri, change, acl_id, content_hash)
        select n.collection_id, n.document_id, n.uri, 'created', n.acl_id, n.content_hash from new_rows as n;
    elsif tg_op = 'DELETE' then
        insert into pgrag.document_history (collection_id, document_id, uri, change, acl_id, content_hash)
        select o.collection_id, o.document_id, o.uri, 'deleted', o.acl_id, o.content_hash from old_rows as o;
    else
        insert into pgrag.document_history (collection_id, document_id, uri, change, acl_id, content_hash)
        select n.collection_id, n.document_id, n.uri, w.change, n.acl_id, n.content_hash
        from new_rows as n
        inner join old_rows as o on o.collection_id = n.collection_id and o.document_id = n.document_id
        cross join lateral (
            select 'changed' where (n.uri, n.title, n.language, n.content_hash, n.metadata)
                is distinct from (o.uri, o.title, o.language, o.content_hash, o.metadata)
            union all
            select 'moved' where n.acl_id <> o.acl_id
        ) as w (change);
    end if;
    return null;
end
$$;

comment on function pgrag._log_document() is
'Writes down what happened to documents in document_history. Statement trigger on document.';
