-- Counts the passages that vectors would not find any more if another space answered.
create or replace function pgrag._space_lack(
    collection_id int, space_id int, than_space_id int, since timestamptz, out waiting bigint, out without bigint
) returns record
language plpgsql stable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if than_space_id is null then
        without := 0;
        select count(*) into waiting
        from pgrag.embed_queue as q
        where q.collection_id = _space_lack.collection_id and q.space_id = _space_lack.space_id
            and not (q.attempts = 0 and q.not_before > since);
        return;
    end if;
    execute format(
        'select count(q.chunk_id), count(*) - count(q.chunk_id)
        from pgrag.%1$I as o
        left join pgrag.embed_queue as q on q.space_id = $2 and q.chunk_id = o.chunk_id
        where o.collection_id = $1 and (q.attempts = 0 and q.not_before > $3) is not true
            and not exists (select from pgrag.%2$I as n where n.collection_id = $1 and n.chunk_id = o.chunk_id)',
        'embedding_' || than_space_id, 'embedding_' || space_id
    ) into waiting, without using collection_id, space_id, since;
end
$$;

comment on function pgrag._space_lack(int, int, int, timestamptz) is
'Counts the passages of a collection that have a vector in the space that answers now (than_space_id) and none in another: waiting, those that are queued for it, and without, those that are not: its model gave no vector, or gave up.
Passages that were queued after `since` and were not tried yet are on their way, and not counted. than_space_id NULL, since nothing answers now: every passage that is queued is waiting, and nothing is without.';
