-- Lets a paused space be filled again.
create or replace function pgrag.resume_space(space text) returns boolean
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    update pgrag.space as s set paused = false where s.space_id = pgrag._space_id(space) and s.paused;
    return found;
end
$$;

comment on function pgrag.resume_space(text) is
'Lets a paused space be filled again, by the workers that are waiting for it and those to come. Returns false where it was not paused. For members of pgrag_owner. Error RG005.';
