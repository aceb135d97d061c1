-- Says how far a space is filled for a collection.
create or replace function pgrag.space_progress(
    collection text, space text, lag interval default '0',
    out total bigint, out waiting bigint, out late bigint, out claimed bigint, out failing bigint, out due_at timestamptz,
    out state text, out paused boolean, out active_space text, out query_encoder text
) returns record
language plpgsql stable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    to_id int := pgrag._collection_id(collection);
    of_id int := pgrag._space_id(space);
begin
    select coalesce(sum(s.chunks), 0) into total from pgrag.corpus_stat as s where s.collection_id = to_id;
    select count(*), count(*) filter (where q.attempts > 0 or q.not_before <= now() - lag), count(*) filter (where q.leased_until > now()),
        count(*) filter (where q.attempts > 0), min(greatest(q.not_before, q.leased_until))
    into waiting, late, claimed, failing, due_at
    from pgrag.embed_queue as q
    where q.collection_id = to_id and q.space_id = of_id;
    select s.state, s.paused, s.query_encoder into state, paused, query_encoder
    from pgrag.space as s where s.space_id = of_id;
    select s.name into active_space
    from pgrag.collection as c
    inner join pgrag.space as s on s.space_id = c.active_space_id
    where c.collection_id = to_id;
end
$$;

comment on function pgrag.space_progress(text, text, interval) is
'Says how far a space is filled for a collection: total passages of the collection; waiting: those that are queued for the space; of these late: queued longer ago than lag, or tried in vain; claimed by a worker at this moment; failing: tried in vain; due_at: when the first of them is free to be claimed, in the past where one is, NULL where none waits.
Also the space''s state, whether it is paused, active_space: the name of the space that answers now (NULL: none does), and query_encoder: what embeds queries in SQL (NULL: nothing). For members of pgrag_writer and pgrag_owner. Errors: RG002, RG005.';
