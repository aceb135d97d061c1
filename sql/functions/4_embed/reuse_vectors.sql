-- Gives chunks the vectors of others with the same text, so that no text is embedded twice in a space.
create or replace function pgrag.reuse_vectors(space text, chunk_ids bigint[]) returns bigint[]
language plpgsql volatile parallel unsafe security definer
set search_path from current
as $$
declare
    in_space int;
    filled bigint[];
begin
    -- As in store_vectors.
    lock table pgrag.chunk in access share mode;
    in_space := pgrag._space_id(space);
    -- Looked up once a text and before anything is locked; then locked as pgrag.store_vectors locks. A chunk whose own
    -- vector is to be made again stands in the queue, and lends none.
    execute format(
        'with wanted as materialized (
            select c.chunk_id, c.hash
            from unnest($1) as g (chunk_id)
            inner join pgrag.embed_queue as q on q.space_id = $2 and q.chunk_id = g.chunk_id
            inner join pgrag.chunk as c on c.collection_id = q.collection_id and c.chunk_id = q.chunk_id
        ),

        lent as materialized (
            select w.hash, o.embedding
            from (select distinct w.hash from wanted as w) as w
            cross join lateral (
                select e.embedding
                from pgrag.chunk as c
                inner join pgrag.%1$I as e on e.collection_id = c.collection_id and e.chunk_id = c.chunk_id
                where c.hash = w.hash
                    and not exists (select from pgrag.embed_queue as q where q.space_id = $2 and q.chunk_id = c.chunk_id)
                limit 1
            ) as o
        ),

        held as materialized (
            select c.collection_id, c.chunk_id, c.acl_id, l.embedding
            from wanted as w
            inner join lent as l on l.hash = w.hash
            inner join pgrag.embed_queue as q on q.space_id = $2 and q.chunk_id = w.chunk_id
            inner join pgrag.chunk as c on c.collection_id = q.collection_id and c.chunk_id = w.chunk_id and c.hash = w.hash
            inner join pgrag.document as d on d.collection_id = c.collection_id and d.document_id = c.document_id
            order by d.collection_id, d.uri, c.ordinal
            for share of d, c
        ),

        written as (
            insert into pgrag.%1$I as e (collection_id, chunk_id, acl_id, embedding)
            select h.collection_id, h.chunk_id, h.acl_id, h.embedding
            from held as h
            order by h.chunk_id
            on conflict (collection_id, chunk_id) do update set embedding = excluded.embedding
            returning e.chunk_id
        ),

        done as (
            delete from pgrag.embed_queue as q
            using written as w
            where q.space_id = $2 and q.chunk_id = w.chunk_id
            returning q.chunk_id
        )

        select coalesce(array_agg(d.chunk_id order by d.chunk_id), ''{}'') from done as d', 'embedding_' || in_space
    ) into filled using chunk_ids, in_space;
    return filled;
end
$$;

comment on function pgrag.reuse_vectors(text, bigint[]) is
'Gives chunks the vectors of others with the same text, and takes them off the queue, so that no text is embedded twice in a space; returns their ids, ascending.
chunk_ids: as pgrag.claim_chunks gave them; one that isn''t queued, or whose text no other chunk of the space has a vector for, is left as it is. Only chunks that are there now lend: nothing is kept of a deleted text. Two workers that claim the same text at the same moment may both embed it. For members of pgrag_writer and pgrag_owner. Error RG005.';
