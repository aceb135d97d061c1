-- Lists the documents whose source and readers are as they were at their last ingest.
create or replace function pgrag.unchanged(
    collection text, uris text[], hashes bytea[], readers text[]
) returns setof text
language plpgsql stable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    in_id int := pgrag._collection_id(collection);
begin
    return query
    select d.uri
    from unnest(uris, hashes) as g (uri, hash)
    inner join pgrag.document as d on d.collection_id = in_id and d.uri = g.uri and d.content_hash = g.hash
    inner join pgrag.acl as a on a.collection_id = d.collection_id and a.acl_id = d.acl_id
    where a.digest = pgrag._acl_digest(readers);
end
$$;

comment on function pgrag.unchanged(text, text[], bytea[], text[]) is
'Lists the documents, of those given with their content hashes, whose source and readers are as they were at their last ingest. For members of pgrag_writer and pgrag_owner. Error RG002.';
