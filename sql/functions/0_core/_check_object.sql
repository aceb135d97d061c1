-- Refuses a value that is not a JSON object.
create or replace function pgrag._check_object(name text, value jsonb) returns void
language plpgsql stable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if value is null or jsonb_typeof(value) <> 'object' then
        raise exception '% must be a JSON object, got %', name, coalesce(left(value::text, 100), 'NULL')
            using errcode = 'RG001', hint = 'Write {} for nothing.';
    end if;
end
$$;

comment on function pgrag._check_object(text, jsonb) is
'Refuses a value that is not a JSON object; name: what to call it. Error RG001.';
