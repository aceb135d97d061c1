-- Moves the access version, so that what act_as kept is made again.
create or replace function pgrag._note_access_change() returns trigger
language plpgsql volatile parallel unsafe security definer
set search_path = pg_catalog, pg_temp
set row_security = on
as $$
begin
    insert into pgrag.access_change (n) values (1);
    return null;
end
$$;

comment on function pgrag._note_access_change() is
'Moves the access version, so that what act_as kept is made again. Statement trigger on membership and acl_entry.';
