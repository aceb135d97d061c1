-- Reads the counter that moves whenever memberships or ACL entries change.
create or replace function pgrag._access_version() returns bigint
language sql stable parallel safe security definer
set search_path = pg_catalog, pg_temp
as $$
    select coalesce(sum(c.n), 0)::bigint from pgrag.access_change as c
$$;

comment on function pgrag._access_version() is
'Reads the counter that moves whenever memberships or ACL entries change, as this statement''s snapshot has it.';
