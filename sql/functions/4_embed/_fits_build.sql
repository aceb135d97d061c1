-- Tells whether the usual index over the passages of a collection could be built in memory.
create or replace function pgrag._fits_build(collection text, dimension int) returns boolean
language plpgsql stable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    in_id int := pgrag._collection_id(collection);
    passages bigint := (select count(*) from pgrag.chunk as c where c.collection_id = in_id);
begin
    return pgrag._build_bytes(passages, dimension, 'halfvec', 'hnsw', '{}') <= pg_size_bytes(current_setting('maintenance_work_mem'));
end
$$;

comment on function pgrag._fits_build(text, int) is
'Tells whether the usual index, hnsw over halfvec, of a vector for each passage of a collection could be built within maintenance_work_mem. Error RG002.';
