-- Refuses a way of fusing rankings that isn't known.
create or replace function pgrag._check_fusion(fusion text) returns void
language plpgsql immutable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if fusion is null or fusion not in ('rrf', 'minmax') then
        raise exception 'fusion must be rrf or minmax, got %', coalesce(quote_literal(left(fusion, 100)), 'NULL')
            using errcode = 'RG001', hint = 'rrf goes by ranks, minmax by scores.';
    end if;
end
$$;

comment on function pgrag._check_fusion(text) is
'Refuses a way of fusing rankings that isn''t known, or NULL. Error RG001.';
