-- Changes who may read a document.
create or replace function pgrag.set_readers(
    collection text, uri text, readers text[], create_readers boolean default true
) returns boolean
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    in_id int := pgrag._hold_collection(collection);
begin
    perform pgrag._check_readers(uri, readers, create_readers);
    update pgrag.document as d set acl_id = pgrag._acl_id(in_id, readers)
    where d.collection_id = in_id and d.uri = set_readers.uri;
    return found;
end
$$;

comment on function pgrag.set_readers(text, text, text[], boolean) is
'Changes who may read a document: one update, which takes its text, chunks, postings and vectors along; false where there is no such document.
readers as in pgrag.put_document. For members of pgrag_writer and pgrag_owner. Errors: RG002, RG003, RG008, RG022.';
