-- Lets others build the index of a space again, and keeps the figures of what was built.
create or replace function pgrag._end_build(space text, figures jsonb default null) returns jsonb
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    of_space pgrag.space;
    indexes record;
begin
    select * into strict of_space from pgrag.space as s where s.space_id = pgrag._space_id(space);
    perform pg_advisory_unlock(pgrag._build_key(), of_space.space_id);
    select i.* into indexes from pgrag._space_indexes(of_space) as i;
    if figures is not null then
        figures := figures || jsonb_build_object('index_bytes', indexes.bytes, 'built_at', date_trunc('second', now()));
        perform pgrag.note_figures(space, jsonb_build_object('build', figures));
    end if;
    -- Filled and indexed: so it may be activated.
    update pgrag.space as s set state = 'ready'
    where s.space_id = of_space.space_id and s.state = 'building' and indexes.state in ('valid', 'none')
        and exists (select from pgrag.collection_space as cs where cs.space_id = s.space_id)
        and not exists (select from pgrag.embed_queue as q where q.space_id = s.space_id);
    return figures;
end
$$;

comment on function pgrag._end_build(text, jsonb) is
'Lets others build the index of a space again after pgrag._begin_build, and keeps the figures of what was built (see pgrag.note_figures), with the size of the index and when; returns them. NULL: nothing was built. A space that lacks neither vectors nor index is ready from then on. For members of pgrag_owner. Error RG005.';
