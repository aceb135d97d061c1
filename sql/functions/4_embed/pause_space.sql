-- Stops the filling of a space for a while.
create or replace function pgrag.pause_space(space text) returns boolean
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    update pgrag.space as s set paused = true where s.space_id = pgrag._space_id(space) and not s.paused;
    return found;
end
$$;

comment on function pgrag.pause_space(text) is
'Stops the filling of a space for a while: workers, wherever they run, finish what they have claimed and claim nothing more of it. Returns false where it was paused already.
Searches don''t change, and what is written meanwhile is queued; a static space goes on to embed new documents in SQL. pgrag.resume_space ends it. For members of pgrag_owner. Error RG005.';
