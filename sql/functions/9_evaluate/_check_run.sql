-- Refuses rows for a run that is none, and rows that lack something.
create or replace function pgrag._check_run(run_id bigint, rows jsonb, needed text[]) returns void
language plpgsql stable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    wrong text;
begin
    if not exists (select from pgrag.run as r where r.run_id = _check_run.run_id) then
        raise exception 'run % does not exist', coalesce(run_id::text, 'NULL')
            using errcode = 'RG034', hint = 'Those that do: select * from pgrag.runs()';
    end if;
    if rows is null or jsonb_typeof(rows) <> 'array' or jsonb_path_exists(rows, 'strict $[*] ? (@.type() != "object")') then
        raise exception 'rows must be a JSON array of objects, got %', coalesce(left(rows::text, 100), 'NULL')
            using errcode = 'RG001', hint = format('Each has %s.', array_to_string(needed, ', '));
    end if;
    select format('%s lacks %s', left(r.value::text, 100), n.name) into wrong
    from jsonb_array_elements(rows) as r (value)
    cross join unnest(needed) as n (name)
    where r.value ->> n.name is null
    limit 1;
    if found then
        raise exception 'a row %', wrong
            using errcode = 'RG001', hint = format('Each has %s.', array_to_string(needed, ', '));
    end if;
end
$$;

comment on function pgrag._check_run(bigint, jsonb, text[]) is
'Refuses rows for a run that is none (error RG034), and rows that are no JSON array of objects or lack one of the needed keys (RG001).';
