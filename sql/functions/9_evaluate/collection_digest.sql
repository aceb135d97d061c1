-- Tells whether a collection is still what it was: its texts, and who may read them.
create or replace function pgrag.collection_digest(collection text) returns text
language plpgsql stable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    of_id int := pgrag._collection_id(collection);
    digest text;
begin
    -- A sum, so that it needs neither an order nor the room for all of them.
    select (coalesce(sum(hashtextextended(
        concat_ws(E'\n', d.uri, d.title, encode(d.content_hash, 'hex'), encode(a.digest, 'hex'), d.language, d.metadata::text), 0
    )::numeric), 0))::text into digest
    from pgrag.document as d
    inner join pgrag.acl as a on a.collection_id = d.collection_id and a.acl_id = d.acl_id
    where d.collection_id = of_id;
    return digest;
end
$$;

comment on function pgrag.collection_digest(text) is
'Tells whether a collection is still what it was: a digest of the uris, titles, texts, languages, metadata and readers of its documents. Who is in which group is not in it.
For telling whether a change came between two evaluations, not against forgery. For members of pgrag_writer and pgrag_owner. Error RG002.';
