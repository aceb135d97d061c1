-- Refuses options that the approximate index of a space doesn't have.
create or replace function pgrag._check_index_options(index_kind text, index_options jsonb) returns void
language plpgsql stable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    known text[] := case index_kind when 'hnsw' then array['m', 'ef_construction'] when 'ivfflat' then array['lists'] else '{}' end;
    wrong text;
begin
    perform pgrag._check_object('index_options', index_options);
    select o.key into wrong from jsonb_each(index_options) as o where o.key <> all(known) order by o.key limit 1;
    if found then
        raise exception 'an index of kind % has no option "%"', index_kind, wrong
            using errcode = 'RG001', hint = format('It has %s.', coalesce(nullif(array_to_string(known, ' and '), ''), 'none'));
    end if;
    select o.key into wrong from jsonb_each(index_options) as o where o.value::text !~ '^[0-9]{1,9}$' order by o.key limit 1;
    if found then
        raise exception '% must be a whole number, got %', wrong, index_options -> wrong
            using errcode = 'RG001', hint = format('Write it as {"%s": 16}.', wrong);
    end if;
    perform pgrag._check_range('m', coalesce((index_options ->> 'm')::int, 16), 2, 100);
    perform pgrag._check_range('ef_construction', coalesce((index_options ->> 'ef_construction')::int, 64), 4, 1000);
    perform pgrag._check_range('lists', coalesce((index_options ->> 'lists')::int, 100), 1, 32768);
    if coalesce((index_options ->> 'ef_construction')::int, 64) < 2 * coalesce((index_options ->> 'm')::int, 16) then
        raise exception 'ef_construction must be at least twice m, got % and %',
            coalesce(index_options ->> 'ef_construction', '64'), coalesce(index_options ->> 'm', '16')
            using errcode = 'RG001', hint = 'Raise ef_construction: {"m": 32, "ef_construction": 128}.';
    end if;
end
$$;

comment on function pgrag._check_index_options(text, jsonb) is
'Refuses options that the approximate index of a space doesn''t have: m 2 to 100 and ef_construction 4 to 1,000 and at least 2 m for hnsw, lists 1 to 32,768 for ivfflat. Error RG001.';
