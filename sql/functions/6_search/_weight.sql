-- Reads the weight of one arm, and refuses what isn't one.
create or replace function pgrag._weight(weights jsonb, arm text) returns float8
language plpgsql immutable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    wrong text;
begin
    if weights is null or jsonb_typeof(weights) <> 'object' then
        raise exception 'weights must be a JSON object, got %', coalesce(weights::text, 'NULL')
            using errcode = 'RG001', hint = 'Pass {"lexical": 1, "dense": 1}.';
    end if;
    select w.key into wrong from jsonb_each(weights) as w
    where w.key not in ('lexical', 'dense') or jsonb_typeof(w.value) <> 'number' or (w.value #>> '{}')::numeric not between 0 and 1000000
    limit 1;
    if found then
        raise exception 'weights has "%": %', wrong, weights -> wrong
            using errcode = 'RG001', hint = 'The arms are lexical and dense; a weight is a number from 0 to 1,000,000.';
    end if;
    return coalesce((weights ->> arm)::float8, 1);
end
$$;

comment on function pgrag._weight(jsonb, text) is
'Reads the weight of one arm; 1 where it isn''t named. Error RG001: not an object, an unknown arm, or a number out of range.';
