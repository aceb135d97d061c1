-- Draws vectors of a space, to ask questions near them.
create or replace function pgrag._sample_vectors(space text, n int, seed int default 0) returns table (embedding text)
language plpgsql stable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    return query execute format(
        'select e.embedding::text from pgrag.%I as e order by hashint8extended(e.chunk_id, $1), e.chunk_id limit $2',
        'embedding_' || pgrag._query_space(coalesce(space, ''))
    ) using seed, n;
end
$$;

comment on function pgrag._sample_vectors(text, int, int) is
'Draws vectors of a space, to ask questions near them: at most n, as `[0.1,...]`; the same seed draws the same. Error RG005.';
