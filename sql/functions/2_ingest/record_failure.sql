-- Writes down why a document could not be taken in.
create or replace function pgrag.record_failure(collection text, stage text, uri text, reason text) returns void
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into pgrag.failure (collection_id, stage, uri, reason)
    values (pgrag._collection_id(collection), stage, uri, reason)
    on conflict on constraint failure_uri_key do update set reason = excluded.reason, failed_at = now();
end
$$;

comment on function pgrag.record_failure(text, text, text, text) is
'Writes down why a document could not be taken in; replaces the earlier reason of the same document and stage (parse, chunk, load or embed). For members of pgrag_writer and pgrag_owner. Error RG002.';
