-- Deletes a space for good: its vectors, its token vectors, what was queued for it, and its passport.
create or replace function pgrag.drop_space(name text) returns void
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
set lock_timeout = '5s'
as $$
declare
    of_id int := pgrag._space_id(name);
    answered text[];
    now_state text;
begin
    -- Chunk, then what is attached, then the space, as everybody locks them. Whoever waits for this lock makes all who come later wait
    -- as well, hence the timeout.
    lock table pgrag.chunk in access exclusive mode;
    -- Again: another may have dropped it meanwhile.
    of_id := pgrag._space_id(name);
    perform from pgrag.collection_space as cs where cs.space_id = of_id order by cs.collection_id for update;
    select s.state into now_state from pgrag.space as s where s.space_id = of_id for update;
    select array_agg(c.name order by c.name) into answered from pgrag.collection as c where c.active_space_id = of_id;
    if answered is not null then
        raise exception 'space "%" answers the searches of %', name, array_to_string(answered, ', ')
            using errcode = 'RG032',
                hint = format('Let another answer first: select pgrag.activate_space(%L, SPACE)', answered[1]);
    elsif now_state = 'active' then
        raise exception 'space "%" is active: new collections are answered by it', name
            using errcode = 'RG032', hint = format('First: select pgrag.retire_space(%L)', name);
    end if;
    delete from pgrag.encoder_token as t where t.space_id = of_id;
    delete from pgrag.collection_space as cs where cs.space_id = of_id;
    execute format('drop table if exists pgrag.%I', 'embedding_' || of_id);
    delete from pgrag.space as s where s.space_id = of_id;
exception when lock_not_available then
    raise exception 'space "%" can''t be dropped while long statements hold its tables', name
        using errcode = 'lock_not_available',
            hint = 'Try again when they have ended: select pid, query from pg_stat_activity order by xact_start';
end
$$;

comment on function pgrag.drop_space(text) is
'Deletes a space for good: its vectors, its token vectors, what was queued for it, and its passport.
Only one that is retired, or never was active, and answers no collection. Searches and writers wait until this transaction ends; it gives up after five seconds when others hold the tables. For members of pgrag_owner. Errors: RG005 no such space, RG032 in use, 55P03 try again.';
