-- Refuses a metadata filter that is not a JSON object.
create or replace function pgrag._check_filter(filter jsonb) returns void
language plpgsql immutable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if filter is null or jsonb_typeof(filter) <> 'object' then
        raise exception 'filter must be a JSON object, got %', coalesce(filter::text, 'NULL')
            using errcode = 'RG001', hint = 'Pass what a document''s metadata must contain, such as {"product": "vault"}; {} is no filter.';
    end if;
end
$$;

comment on function pgrag._check_filter(jsonb) is
'Refuses a metadata filter that is not a JSON object. Error RG001.';
