-- Refuses a number that is out of its range.
create or replace function pgrag._check_range(name text, value int, lowest int, highest int) returns void
language plpgsql immutable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if value is null or value < lowest or value > highest then
        raise exception '% must be between % and %, got %', name, lowest, highest, coalesce(value::text, 'NULL')
            using errcode = 'RG001', hint = format('Pass a %s in that range.', name);
    end if;
end
$$;

comment on function pgrag._check_range(text, int, int, int) is
'Refuses a number that is out of its range, or NULL. Error RG001.';
