-- Measures what it costs to write vectors of a space and to delete them, and takes both back.
create or replace function pgrag._write_cost(
    space text, n int, out vectors int, out insert_ms float8, out delete_ms float8
) returns record
language plpgsql volatile parallel unsafe security invoker
set search_path from current
as $$
declare
    of_space pgrag.space;
    chunk_ids bigint[];
    hashes bytea[];
    embeddings text[];
    started timestamptz;
begin
    select * into strict of_space from pgrag.space as s where s.space_id = pgrag._space_id(space);
    -- Between two that are there: a vector that the index holds already would only be noted at its place.
    execute format(
        'with drawn as materialized (
            select e.collection_id, e.chunk_id, e.embedding::vector as embedding, row_number() over () as place
            from (
                select e.* from pgrag.%I as e
                inner join pgrag.collection_space as cs on cs.collection_id = e.collection_id and cs.space_id = $1
                order by hashint8extended(e.chunk_id, 1), e.chunk_id
                limit $2
            ) as e
        )
        select array_agg(d.chunk_id order by d.place), array_agg(c.hash order by d.place), array_agg(
            ((l2_normalize(d.embedding + o.embedding)::real[]) || array_fill(0::real, array[$3]))::vector::text order by d.place
        )
        from drawn as d
        inner join drawn as o on o.place = d.place %% (select count(*) from drawn) + 1
        inner join pgrag.chunk as c on c.collection_id = d.collection_id and c.chunk_id = d.chunk_id',
        'embedding_' || of_space.space_id
    ) into chunk_ids, hashes, embeddings using of_space.space_id, n, of_space.model_dimension - of_space.dimension;
    vectors := coalesce(cardinality(chunk_ids), 0);
    if vectors = 0 then
        return;
    end if;
    begin
        started := clock_timestamp();
        execute format(
            'delete from pgrag.%I as e using pgrag.collection_space as cs
            where cs.space_id = $2 and e.collection_id = cs.collection_id and e.chunk_id = any($1)', 'embedding_' || of_space.space_id
        ) using chunk_ids, of_space.space_id;
        delete_ms := extract(epoch from clock_timestamp() - started) * 1000 / vectors;
        insert into pgrag.embed_queue (collection_id, space_id, chunk_id)
        select c.collection_id, of_space.space_id, c.chunk_id
        from pgrag.chunk as c
        inner join pgrag.collection_space as cs on cs.collection_id = c.collection_id and cs.space_id = of_space.space_id
        where c.chunk_id = any(chunk_ids)
        on conflict on constraint embed_queue_pkey do nothing;
        started := clock_timestamp();
        perform pgrag.store_vectors(space, chunk_ids, hashes, embeddings);
        insert_ms := extract(epoch from clock_timestamp() - started) * 1000 / vectors;
        raise exception 'measured' using hint = 'Caught here: nothing of it stays.';
    exception when raise_exception then
        null;
    end;
end
$$;

comment on function pgrag._write_cost(text, int) is
'Measures what it costs to write vectors of a space and to delete them, and takes both back: milliseconds a vector, over at most n of them in one call; vectors: how many it took. NULL where no collection holds any.
insert_ms is that of pgrag.store_vectors, indexes and queue included; delete_ms is that of the rows alone: an index forgets them when it is vacuumed. The passages are locked meanwhile, and room that was written is free again after the next vacuum. Error RG005.';
