-- Tells a writer how documents of a collection are cut and embedded.
create or replace function pgrag.collection_settings(
    collection text, out analyzer text, out chunk_tokens int, out space text
) returns record
language plpgsql stable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    select c.analyzer, c.chunk_tokens, s.name into analyzer, chunk_tokens, space
    from pgrag.collection as c
    left join pgrag.space as s on s.space_id = c.active_space_id
    where c.collection_id = pgrag._collection_id(collection);
end
$$;

comment on function pgrag.collection_settings(text) is
'Tells a writer how documents of a collection are cut and embedded: its analyzer, the most tokens in a chunk, and the name of its active space (NULL: none). For members of pgrag_writer and pgrag_owner. Error RG002.';
