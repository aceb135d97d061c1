-- Lets a space hold the vectors of a collection, and queues what it lacks.
create or replace function pgrag.attach_space(collection text, space text) returns bigint
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    to_id int := pgrag._collection_id(collection);
    of_id int := pgrag._space_id(space);
    queued bigint;
begin
    -- A writer who began before this commits would not queue its chunks for the space: so wait for those, and hold the next.
    lock table pgrag.chunk in share mode;
    -- Again: it may have been dropped meanwhile.
    of_id := pgrag._space_id(space);
    insert into pgrag.collection_space (collection_id, space_id) values (to_id, of_id)
    on conflict on constraint collection_space_pkey do nothing;
    if not found then
        return 0;
    end if;
    if exists (select from pgrag.space as s where s.space_id = of_id and s.state = 'retired') then
        update pgrag.space as s set state = 'building' where s.space_id = of_id;
    end if;
    -- A space that was detached kept its vectors, and those that are still there are of the text of now.
    execute format(
        'insert into pgrag.embed_queue (collection_id, space_id, chunk_id)
        select c.collection_id, $2, c.chunk_id
        from pgrag.chunk as c
        where c.collection_id = $1
            and not exists (select from pgrag.%I as e where e.collection_id = c.collection_id and e.chunk_id = c.chunk_id)
        on conflict on constraint embed_queue_pkey do nothing', 'embedding_' || of_id
    ) using to_id, of_id;
    get diagnostics queued = row_count;
    return queued;
end
$$;

comment on function pgrag.attach_space(text, text) is
'Lets a space hold the vectors of a collection, and queues what it lacks; returns how many chunks were queued. Searches are not changed until pgrag.activate_space. Writers wait until this transaction ends.
A retired space is in use again from now on; vectors that it kept are not made again. For members of pgrag_writer and pgrag_owner; a retired space is the owner''s. Errors: RG002, RG005.';
