-- Lets a static space be the default of collections that are made from now on.
create or replace function pgrag.open_space(name text) returns void
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    update pgrag.space as s set state = 'active' where s.name = open_space.name;
    if not found then
        raise exception 'space "%" does not exist', name
            using errcode = 'RG005', hint = 'select name from pgrag.space lists the spaces.';
    end if;
end
$$;

comment on function pgrag.open_space(text) is
'Lets a static space be the default of collections that are made from now on: its token vectors are complete. For members of pgrag_owner. Error RG005.';
