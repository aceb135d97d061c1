-- Says what there is to do to build the approximate index of a space, and keeps others from doing it at the same time.
create or replace function pgrag._begin_build(
    space text,
    out index_kind text, out index_state text, out vectors bigint, out uncentred boolean,
    out needed_bytes bigint, out allowed_bytes bigint, out shared_memory text,
    out create_statement text, out reindex_statement text, out drop_statements text[], out alter_statement text
) returns record
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    of_space pgrag.space;
    indexes record;
    lists int;
begin
    select * into strict of_space from pgrag.space as s where s.space_id = pgrag._space_id(space);
    if not pg_try_advisory_lock(pgrag._build_key(), of_space.space_id) then
        raise exception 'the index of space "%" is being built by another session', space
            using errcode = 'RG032',
                hint = 'Wait for it, or end it: select pg_terminate_backend(pid) from pg_stat_progress_create_index';
    end if;
    -- Whatever fails from here on gives the lock back.
    begin
        select i.* into indexes from pgrag._space_indexes(of_space) as i;
        index_kind := of_space.index_kind;
        index_state := indexes.state;
        execute format('select count(*) from pgrag.%I', 'embedding_' || of_space.space_id) into vectors;
        -- The number of lists goes by what the planner knows.
        execute format('analyze pgrag.%I', 'embedding_' || of_space.space_id);
        uncentred := of_space."precision" = 'bit' and of_space.center is null;
        create_statement := pgrag._space_index(space);
        lists := substring(create_statement from 'lists = (\d+)')::int;
        needed_bytes := pgrag._build_bytes(
            vectors, of_space.dimension, of_space."precision", index_kind,
            jsonb_build_object('lists', lists) || of_space.index_options
        );
        allowed_bytes := pg_size_bytes(current_setting('maintenance_work_mem'));
        shared_memory := current_setting('dynamic_shared_memory_type');
        if indexes.valid is not null then
            reindex_statement := format('reindex index concurrently pgrag.%I', indexes.valid);
            -- Built anew, an index has the lists that it is said to have: those that suit the vectors of now, unless they were given.
            if index_kind = 'ivfflat' and not of_space.index_options ? 'lists' and not exists (
                select from pg_class as c
                where c.oid = format('pgrag.%I', indexes.valid)::regclass and format('lists=%s', lists) = any(c.reloptions)
            ) then
                alter_statement := format('alter index pgrag.%I set (lists = %s)', indexes.valid, lists);
            end if;
        end if;
        drop_statements := array(select format('drop index concurrently if exists pgrag.%I', i.name) from unnest(indexes.invalid) as i (name));
    exception when others or query_canceled then
        perform pg_advisory_unlock(pgrag._build_key(), of_space.space_id);
        raise;
    end;
end
$$;

comment on function pgrag._begin_build(text) is
'Says what there is to do to build the approximate index of a space, and keeps others from doing it at the same time: until pgrag._end_build, or the end of the session.
index_state: see pgrag._space_indexes. uncentred: pgrag.center_codes comes first. needed_bytes: see pgrag._build_bytes; allowed_bytes: maintenance_work_mem as it is set. shared_memory: dynamic_shared_memory_type.
The statements are to be run outside a transaction by a member of pgrag_owner: drop_statements take away what stopped builds left, create_statement or, after alter_statement where that is not NULL, reindex_statement (of a valid index) builds. Errors: RG005, RG032 somebody else is at it.';
