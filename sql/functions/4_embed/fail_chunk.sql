-- Puts a chunk that a worker could not embed back into the queue, for later.
create or replace function pgrag.fail_chunk(space text, chunk_id bigint, reason text) returns int
language plpgsql volatile parallel unsafe security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    in_space int := pgrag._space_id(space);
    tried int;
begin
    update pgrag.embed_queue as q
    set attempts = q.attempts + 1, leased_until = null, error = reason,
        not_before = now() + least(interval '1 hour', interval '5 seconds' * power(2, q.attempts))
    where q.space_id = in_space and q.chunk_id = fail_chunk.chunk_id
    returning q.attempts into tried;
    if tried >= 8 then
        insert into pgrag.failure (collection_id, stage, uri, reason)
        select c.collection_id, 'embed', d.uri, reason
        from pgrag.embed_queue as q
        inner join pgrag.chunk as c on c.collection_id = q.collection_id and c.chunk_id = q.chunk_id
        inner join pgrag.document as d on d.collection_id = c.collection_id and d.document_id = c.document_id
        where q.space_id = in_space and q.chunk_id = fail_chunk.chunk_id
        on conflict on constraint failure_uri_key do update set reason = excluded.reason, failed_at = now();
        delete from pgrag.embed_queue as q where q.space_id = in_space and q.chunk_id = fail_chunk.chunk_id;
    end if;
    return tried;
end
$$;

comment on function pgrag.fail_chunk(text, bigint, text) is
'Puts a chunk that a worker could not embed back into the queue, for later: 5 seconds, doubled each time, an hour at most; the eighth time it moves to failure. Returns the attempts so far; NULL where it is not queued. For members of pgrag_writer and pgrag_owner. Error RG005.';
