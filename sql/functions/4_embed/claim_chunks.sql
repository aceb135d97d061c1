-- Gives a worker chunks to embed, for a while.
create or replace function pgrag.claim_chunks(
    space text, batch int default 256, lease interval default '5 minutes'
) returns table (chunk_id bigint, hash bytea, content text)
language plpgsql volatile parallel unsafe security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    in_space int := pgrag._space_id(space);
begin
    perform pgrag._check_range('batch', batch, 1, 100000);
    if lease is null or lease < interval '0' or lease > interval '30 days' then
        raise exception 'a lease is 0 seconds to 30 days, got %', coalesce(lease::text, 'NULL')
            using errcode = 'RG001', hint = 'Pass longer than the encoder takes for a batch, such as 5 minutes.';
    end if;
    return query
    with due as materialized (
        select q.chunk_id
        from pgrag.embed_queue as q
        where q.space_id = in_space and q.not_before <= now() and (q.leased_until is null or q.leased_until < now())
            and not exists (select from pgrag.space as s where s.space_id = in_space and s.paused)
        order by q.chunk_id
        limit batch
        for update skip locked
    ),

    leased as (
        update pgrag.embed_queue as q set leased_until = now() + lease
        from due as d
        where q.space_id = in_space and q.chunk_id = d.chunk_id
        returning q.collection_id, q.chunk_id
    )

    select c.chunk_id, c.hash, c.context || E'\n' || c.content
    from leased as l
    inner join pgrag.chunk as c on c.collection_id = l.collection_id and c.chunk_id = l.chunk_id
    order by c.chunk_id;
end
$$;

comment on function pgrag.claim_chunks(text, int, interval) is
'Gives a worker chunks to embed, for a while: at most `batch` (1 to 100,000), by chunk_id; no other worker gets them until the lease, 0 seconds to 30 days, is over. Nothing of a paused space.
content is what is to be embedded: context, a line feed, content. Commit before the model is called. For members of pgrag_writer and pgrag_owner. Errors: RG001, RG005.';
