-- Takes a space out of use: it gets no new vectors, and may be dropped or brought back.
create or replace function pgrag.retire_space(name text) returns boolean
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    of_id int := pgrag._space_id(name);
    answered text[];
begin
    -- As in attach_space: a writer who began before this commits would queue chunks for a space that is gone.
    lock table pgrag.chunk in share mode;
    -- Again: it may have been dropped meanwhile.
    of_id := pgrag._space_id(name);
    -- Whoever activates it at this moment is waited for.
    perform from pgrag.collection_space as cs where cs.space_id = of_id order by cs.collection_id for update;
    select array_agg(c.name order by c.name) into answered from pgrag.collection as c where c.active_space_id = of_id;
    if answered is not null then
        raise exception 'space "%" answers the searches of %', name, array_to_string(answered, ', ')
            using errcode = 'RG032',
                hint = format('Let another answer first: select pgrag.activate_space(%L, SPACE)', answered[1]);
    end if;
    delete from pgrag.collection_space as cs where cs.space_id = of_id;
    update pgrag.space as s set state = 'retired', paused = false where s.space_id = of_id and s.state <> 'retired';
    return found;
end
$$;

comment on function pgrag.retire_space(text) is
'Takes a space out of use: it is detached from every collection, nothing is embedded in it any more, and what was queued for it is forgotten. Returns false where it was retired already.
Its vectors stay, but for those of passages that change or go; so pgrag.attach_space brings it back, and only what it lacks is embedded. pgrag.drop_space gives the room back. Readers see it no more. Writers wait until this transaction ends.
Refused while it answers the searches of a collection. For members of pgrag_owner. Errors: RG005 no such space, RG032 in use.';
