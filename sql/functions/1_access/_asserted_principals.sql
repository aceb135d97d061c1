-- Reads the principals that an application asserted for this transaction, strictly.
create or replace function pgrag._asserted_principals() returns text[]
language plpgsql stable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    setting text := nullif(current_setting('pgrag.principals', true), '');
    names text[];
begin
    -- An exception block would start a subtransaction, which a parallel worker can't; so test, then cast.
    if setting is null or not pg_input_is_valid(setting, 'jsonb') then
        return null;
    end if;
    if jsonb_typeof(setting::jsonb) <> 'array' then
        return null;
    end if;
    if exists (
        select from jsonb_array_elements(setting::jsonb) as e (value)
        where jsonb_typeof(e.value) <> 'string'
            or not pgrag._is_principal(e.value #>> '{}')
            or (e.value #>> '{}') like 'role:%'
    ) then
        return null;
    end if;
    select array_agg(distinct e.value) into names from jsonb_array_elements_text(setting::jsonb) as e (value);
    -- Nobody was named: that is no caller, and not everybody.
    return case when names is not null then names || array['public'] end;
end
$$;

comment on function pgrag._asserted_principals() is
'Reads the principals that an application asserted for this transaction, strictly.
NULL when none were, or when the setting pgrag.principals is anything but a JSON array of one or more valid names without `role:`: no caller, no rows. Says nothing about whether the application may assert them.';
