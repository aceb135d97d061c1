-- Says how far the build of a space's approximate index is.
create or replace function pgrag._build_progress(
    space text, out phase text, out done bigint, out total bigint, out waits_for int, out workers int
) returns record
language plpgsql stable parallel restricted security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    select p.phase, nullif(p.current_locker_pid, 0),
        -- hnsw counts blocks, ivfflat the vectors that it puts into lists.
        case when p.tuples_total > 0 then p.tuples_done when p.blocks_total > 0 then p.blocks_done end,
        case when p.tuples_total > 0 then p.tuples_total when p.blocks_total > 0 then p.blocks_total end,
        (select count(*) from pg_stat_activity as a where a.leader_pid = p.pid)
    into phase, waits_for, done, total, workers
    from pg_stat_progress_create_index as p
    where p.relid = to_regclass(format('pgrag.embedding_%s', pgrag._space_id(space)));
end
$$;

comment on function pgrag._build_progress(text) is
'Says how far the build of a space''s approximate index is, by pg_stat_progress_create_index: the phase in the server''s words, done of total in it (blocks or vectors; NULL where it counts neither), the process whose transaction it waits for (NULL: none), and the parallel workers. All NULL where none runs, or where the one who asks isn''t a member of the role that builds. Error RG005.';
