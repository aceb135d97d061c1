-- Lists the ACLs that a database role may read through.
create or replace function pgrag.visible_acl_ids(who name) returns int[]
language sql stable parallel safe security definer
set search_path = pg_catalog, pg_temp
as $$
    with caller as materialized (select unnest(pgrag._principals_of(who)) as name)
    select coalesce(array_agg(v.acl_id order by v.acl_id), '{}')
    from (
        select e.acl_id
        from pgrag.acl_entry as e
        inner join caller as c on c.name = e.principal
        group by e.acl_id
        having bool_and(e.allow)
    ) as v
$$;

comment on function pgrag.visible_acl_ids(name) is
'Lists the ACLs that a database role may read through: those with an allow entry for one of its principals and a deny entry for none.
Ascending; `{}` for nobody, and unless the session user is a member of `who`. Call it with current_user.';
