-- Finds a collection by name for a writer, or says that there is none.
create or replace function pgrag._collection_id(collection text) returns int
language plpgsql stable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    found_id int;
begin
    select c.collection_id into found_id from pgrag.collection as c where c.name = collection;
    if found_id is null then
        raise exception 'collection "%" does not exist', coalesce(collection, 'NULL')
            using errcode = 'RG002', hint = format('To make it: select pgrag.create_collection(%L)', collection);
    end if;
    return found_id;
end
$$;

comment on function pgrag._collection_id(text) is
'Finds a collection by name for a writer, or says that there is none. For readers, one they may see nothing of doesn''t exist. Error RG002.';
