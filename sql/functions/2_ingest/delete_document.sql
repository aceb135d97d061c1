-- Takes a document out of a collection, and out of every index at commit.
create or replace function pgrag.delete_document(collection text, uri text) returns boolean
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    from_id int := pgrag._hold_collection(collection);
begin
    delete from pgrag.document as d where d.collection_id = from_id and d.uri = delete_document.uri;
    return found;
end
$$;

comment on function pgrag.delete_document(text, text) is
'Takes a document out of a collection, and out of every index at commit; false where there was none. For members of pgrag_writer and pgrag_owner. Error RG002: no such collection.';
