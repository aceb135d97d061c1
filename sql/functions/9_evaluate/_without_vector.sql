-- Lists the chunks of a collection that have no vector in a space.
create or replace function pgrag._without_vector(of_space pgrag.space, collection_id int, chunk_ids bigint[]) returns bigint[]
language plpgsql stable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    found bigint[];
begin
    execute format(
        'select array(
            select u.chunk_id from unnest($2) as u (chunk_id)
            where not exists (select from pgrag.%I as e where e.collection_id = $1 and e.chunk_id = u.chunk_id)
        )', 'embedding_' || of_space.space_id
    ) into found using collection_id, chunk_ids;
    return found;
end
$$;

comment on function pgrag._without_vector(pgrag.space, int, bigint[]) is
'Lists the chunks of a collection, among these, that have no vector in a space that the caller may see.';
