-- Changes how long the passages of a collection may be, for documents that are written from now on.
create or replace function pgrag.set_chunk_tokens(collection text, chunk_tokens int) returns boolean
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    in_id int := pgrag._collection_id(collection);
begin
    perform pgrag._check_range('chunk_tokens', chunk_tokens, 16, 8192);
    update pgrag.collection as c set chunk_tokens = set_chunk_tokens.chunk_tokens
    where c.collection_id = in_id and c.chunk_tokens <> set_chunk_tokens.chunk_tokens;
    return found;
end
$$;

comment on function pgrag.set_chunk_tokens(text, int) is
'Changes how long the passages of a collection may be, for documents that are written from now on: most tokens, 16 to 8,192. Returns false where it was that already. Then pgrag.rechunk_documents, batch by batch, for those that are there. For members of pgrag_writer and pgrag_owner. Errors: RG001, RG002.';
