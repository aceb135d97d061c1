-- Gives back chunks that a worker claimed and can't embed, for no fault of theirs.
create or replace function pgrag.release_chunks(space text, chunk_ids bigint[]) returns int
language plpgsql volatile parallel unsafe security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    in_space int := pgrag._space_id(space);
    released int;
begin
    update pgrag.embed_queue as q set leased_until = null
    where q.space_id = in_space and q.chunk_id = any(chunk_ids) and q.leased_until is not null;
    get diagnostics released = row_count;
    return released;
end
$$;

comment on function pgrag.release_chunks(text, bigint[]) is
'Gives back chunks that a worker claimed and can''t embed, for no fault of theirs: its model broke down; returns how many were still leased.
They are due at once, and no attempt is counted, as pgrag.fail_chunk does. chunk_ids: as pgrag.claim_chunks gave them; what left the queue meanwhile is passed over. Call it within the lease: later it would end that of another worker, who then does work twice, no harm else. For members of pgrag_writer and pgrag_owner. Error RG005.';
