-- Lists every principal that a database role is, with the groups that hold them.
create or replace function pgrag._principals_of(who name) returns text[]
language plpgsql stable parallel safe security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    names text[];
begin
    if not pg_has_role(session_user, who, 'member') then
        return '{}';
    end if;
    if pg_has_role(who, 'pgrag_app', 'member') then
        names := pgrag._asserted_principals();
    else
        select array_agg('role:' || r.rolname) || array['public'] into names
        from pg_roles as r
        where pg_has_role(who, r.oid, 'member');
    end if;
    return array(
        with recursive holder (name) as (
            select unnest(names)
            union
            select m.group_name from pgrag.membership as m inner join holder as h on h.name = m.member
        )
        select h.name from holder as h order by h.name collate "C"
    );
end
$$;

comment on function pgrag._principals_of(name) is
'Lists every principal that a database role is, with the groups that hold them.
For a member of pgrag_app the asserted ones and public, or none; for others `public` and `role:` of each role they are a member of. Empty unless the session user is a member of `who`. Definer, since readers may not read memberships.';
