-- Queues chunks for the spaces of their collection, and drops the vectors of a text that changed.
create or replace function pgrag._queue_chunks() returns trigger
language plpgsql volatile parallel unsafe security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    in_space int;
begin
    if tg_op = 'INSERT' then
        insert into pgrag.embed_queue (collection_id, space_id, chunk_id)
        select s.collection_id, s.space_id, n.chunk_id
        from new_rows as n
        inner join pgrag.collection_space as s on s.collection_id = n.collection_id
        order by s.space_id, n.chunk_id;
        return null;
    end if;
    -- Spaces that were detached from the collection keep vectors too, for when they are attached again.
    for in_space in
        select s.space_id
        from pgrag.space as s
        where exists (
            select from new_rows as n
            inner join old_rows as o on o.collection_id = n.collection_id and o.chunk_id = n.chunk_id and o.hash <> n.hash
        )
        order by s.space_id
    loop
        execute format(
            'delete from pgrag.%I as e
            using new_rows as n
            inner join old_rows as o on o.collection_id = n.collection_id and o.chunk_id = n.chunk_id and o.hash <> n.hash
            where e.collection_id = n.collection_id and e.chunk_id = n.chunk_id', 'embedding_' || in_space
        );
        insert into pgrag.embed_queue as q (collection_id, space_id, chunk_id)
        select s.collection_id, s.space_id, n.chunk_id
        from new_rows as n
        inner join old_rows as o on o.collection_id = n.collection_id and o.chunk_id = n.chunk_id and o.hash <> n.hash
        inner join pgrag.collection_space as s on s.collection_id = n.collection_id and s.space_id = in_space
        order by n.chunk_id
        on conflict on constraint embed_queue_pkey do update
        set attempts = 0, not_before = now(), leased_until = null, error = null;
    end loop;
    return null;
end
$$;

comment on function pgrag._queue_chunks() is
'Queues chunks for the spaces of their collection, and drops the vectors of a text that changed. Statement trigger on chunk.';
