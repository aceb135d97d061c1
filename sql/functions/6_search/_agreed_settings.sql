-- Finds the search settings that all of some collections have in common.
create or replace function pgrag._agreed_settings(settings jsonb[]) returns jsonb
language sql immutable parallel safe security invoker
begin atomic
select coalesce(jsonb_object_agg(a.key, a.value), '{}')
from (
    select e.key, (array_agg(e.value))[1] as value
    from unnest(settings) as s (one)
    cross join lateral jsonb_each(s.one) as e
    group by e.key
    having count(*) = cardinality(settings) and count(distinct e.value) = 1
) as a;
end;

comment on function pgrag._agreed_settings(jsonb[]) is
'Finds the search settings that all of some collections have in common: those with the same value in each. `{}` for none.';
