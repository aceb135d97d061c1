-- Lets a space answer the dense searches of a collection.
create or replace function pgrag.activate_space(
    collection text, space text, force boolean default false, lag interval default '0'
) returns void
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    to_id int := pgrag._collection_id(collection);
    of_id int := pgrag._space_id(space);
    from_id int;
    lack record;
begin
    if force is null or lag is null or lag < interval '0' then
        raise exception 'force must not be NULL, and lag not negative, got % and %', coalesce(force::text, 'NULL'), coalesce(lag::text, 'NULL')
            using errcode = 'RG001', hint = 'Leave them out.';
    end if;
    -- Two switches of one collection come one after the other, and each sees what the one before did. No writer waits:
    -- a document's foreign key asks for the collection's key alone. The collection first, as pgrag.drop_collection.
    select c.active_space_id into from_id from pgrag.collection as c where c.collection_id = to_id for no key update;
    -- Locked, so that nobody retires or drops it meanwhile.
    perform from pgrag.collection_space as s where s.collection_id = to_id and s.space_id = of_id for key share;
    if not found then
        raise exception 'space "%" holds nothing of collection "%"', space, collection
            using errcode = 'RG005', hint = format('First: select pgrag.attach_space(%L, %L)', collection, space);
    end if;
    if from_id = of_id then
        return;
    end if;
    if not force then
        select l.waiting, l.without into lack from pgrag._space_lack(to_id, of_id, from_id, now() - lag) as l;
        if lack.waiting > 0 then
            raise exception 'space "%" still lacks % vectors of collection "%"', space, lack.waiting, collection
                using errcode = 'RG005',
                    hint = 'Let pgrag worker finish first; or say --force, force => true in SQL, and words alone find these passages until then.';
        end if;
        if lack.without > 0 then
            raise exception 'space "%" has no vector of % passages of collection "%" that vectors find now, and none is on its way',
                space, lack.without, collection
                using errcode = 'RG005',
                    hint = 'pgrag.failure says which were given up, and why; or say --force, force => true in SQL, and words alone find these passages.';
        end if;
    end if;
    -- In one order, so that two collections that change places don't wait for each other.
    perform from pgrag.space as s where s.space_id in (of_id, from_id) order by s.space_id for no key update;
    update pgrag.space as s set state = 'active', paused = false where s.space_id = of_id and (s.state <> 'active' or s.paused);
    update pgrag.collection as c set active_space_id = of_id where c.collection_id = to_id;
    -- A static space stays the default of new collections, which `active` stands for.
    update pgrag.space as s set state = 'ready'
    where s.space_id = from_id and s.state = 'active' and s.kind <> 'static'
        and not exists (select from pgrag.collection as c where c.active_space_id = s.space_id);
end
$$;

comment on function pgrag.activate_space(text, text, boolean, interval) is
'Lets a space answer the dense searches of a collection, from the next statement; the one before keeps its vectors and goes on receiving new ones, so going back is the same call. A space that was paused is filled again, since it answers.
Refused while a passage that has a vector in the space that answers now has none in this one; where nothing answers now, while anything is queued for it. What the space of now lacks as well does not count.
force: switch all the same; passages without a vector are found by words alone until they have one. lag: a passage that was queued no longer ago than this and was not tried yet does not count, since it is on its way: with documents arriving all the time the queue is never empty. Say how long ago the queue was last seen worked off.
Activating what is active does nothing. For members of pgrag_owner. Errors: RG001, RG002, RG005 no such space, not attached, or vectors still lacking.';
