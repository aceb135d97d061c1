-- Finds or makes the ACL that has exactly these entries.
create or replace function pgrag._acl_id(collection_id int, readers text[]) returns int
language plpgsql volatile parallel unsafe security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    wanted bytea := pgrag._acl_digest(readers);
    found_id int;
    unknown text;
begin
    -- Looked up first: an insert that conflicts would burn a number, and numbers are bits in every policy.
    select a.acl_id into found_id from pgrag.acl as a where a.collection_id = _acl_id.collection_id and a.digest = wanted;
    if found_id is not null then
        return found_id;
    end if;
    select r.name into unknown from pgrag.unknown_readers(readers) as r (name) limit 1;
    if found then
        raise exception 'reader "%" is not known', unknown
            using errcode = 'RG003', hint = format('If it is no typing error: select pgrag.create_principals(%L)', unknown);
    end if;
    insert into pgrag.acl (collection_id, digest) values (_acl_id.collection_id, wanted)
    on conflict on constraint acl_digest_key do nothing
    returning acl_id into found_id;
    if found_id is null then
        select a.acl_id into strict found_id
        from pgrag.acl as a where a.collection_id = _acl_id.collection_id and a.digest = wanted;
        return found_id;
    end if;
    insert into pgrag.acl_entry (collection_id, acl_id, principal, allow)
    select _acl_id.collection_id, found_id, ltrim(e.name, '!'), bool_and(not starts_with(e.name, '!'))
    from unnest(readers) as e (name)
    group by ltrim(e.name, '!');
    return found_id;
end
$$;

comment on function pgrag._acl_id(int, text[]) is
'Finds or makes the ACL that has exactly these entries; `!` before a name makes a deny entry, which wins over an allow of the same name. An empty array: nobody reads. Error RG003: a reader that no principal is known by.';
