-- Lets a space answer the dense searches of a collection.
create or replace function pgrag.activate_space(collection text, space text) returns void
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    to_id int := pgrag._collection_id(collection);
    of_id int := pgrag._query_space(space);
    lacking bigint;
begin
    if not exists (select from pgrag.collection_space as s where s.collection_id = to_id and s.space_id = of_id) then
        raise exception 'space "%" holds nothing of collection "%"', space, collection
            using errcode = 'RG005', hint = format('First: select pgrag.attach_space(%L, %L)', collection, space);
    end if;
    select count(*) into lacking from pgrag.embed_queue as q where q.collection_id = to_id and q.space_id = of_id;
    if lacking > 0 then
        raise exception 'space "%" still lacks % vectors of collection "%"', space, lacking, collection
            using errcode = 'RG005', hint = 'Let pgrag worker finish first.';
    end if;
    update pgrag.space as s set state = 'active' where s.space_id = of_id and s.state <> 'active';
    update pgrag.collection as c set active_space_id = of_id where c.collection_id = to_id;
end
$$;

comment on function pgrag.activate_space(text, text) is
'Lets a space answer the dense searches of a collection, from the next statement; the one before keeps its vectors, so going back is the same call. For members of pgrag_owner. Errors: RG002, RG005 no such space, not attached, or vectors still lacking.';
