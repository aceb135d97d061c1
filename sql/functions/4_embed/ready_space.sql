-- Says that a space is filled and indexed, and waits to be activated.
create or replace function pgrag.ready_space(space text) returns boolean
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    update pgrag.space as s set state = 'ready'
    where s.space_id = pgrag._space_id(space) and s.state in ('building', 'retired');
    return found;
end
$$;

comment on function pgrag.ready_space(text) is
'Says that a space is filled and indexed, and waits to be activated; returns false where it was ready or active already. Nothing is checked: pgrag.activate_space does that. For members of pgrag_owner. Error RG005.';
