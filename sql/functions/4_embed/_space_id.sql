-- Looks a space up by its name.
create or replace function pgrag._space_id(name text) returns int
language plpgsql stable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    id int := (select s.space_id from pgrag.space as s where s.name = _space_id.name);
begin
    if id is null then
        raise exception 'space "%" does not exist', coalesce(name, 'NULL')
            using errcode = 'RG005', hint = 'select name from pgrag.space lists the spaces that you may see.';
    end if;
    return id;
end
$$;

comment on function pgrag._space_id(text) is
'Looks a space up by its name. Error RG005: no such space, one that the caller may not see, or NULL.';
