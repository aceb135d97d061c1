-- Says how a search is made: as it asks, else as the collections that it covers are set, else as is usual.
create or replace function pgrag._search_settings(
    settings jsonb[], least_depth int, inout depth int, inout rrf_k int, inout weights jsonb, inout fusion text
) returns record
language plpgsql immutable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    agreed jsonb := '{}';
begin
    if '{}' <> all(settings) then
        agreed := (
            select coalesce(jsonb_object_agg(a.key, a.value), '{}')
            from (
                select e.key, (array_agg(e.value))[1] as value
                from unnest(settings) as s (one)
                cross join lateral jsonb_each(s.one) as e
                group by e.key
                having count(*) = cardinality(settings) and count(distinct e.value) = 1
            ) as a
        );
    end if;
    depth := coalesce(depth, (agreed ->> 'depth')::int, 100);
    rrf_k := coalesce(rrf_k, (agreed ->> 'rrf_k')::int, 60);
    weights := coalesce(weights, agreed -> 'weights', '{}');
    fusion := coalesce(fusion, agreed ->> 'fusion', 'rrf');
    perform pgrag._check_range('depth', depth, 1, 10000);
    perform pgrag._check_range('rrf_k', rrf_k, 1, 1000000);
    perform pgrag._check_fusion(fusion);
    perform pgrag._weight(weights, 'lexical');
    depth := greatest(depth, least_depth);
end
$$;

comment on function pgrag._search_settings(jsonb[], int, int, int, jsonb, text) is
'Says how a search is made: as it asks, else as the collections that it covers are set, where they agree, else as is usual: depth 100, rrf_k 60, both arms alike and `rrf`.
settings: search_settings of these collections. least_depth: candidates of each arm at the least. NULL for depth, rrf_k, weights or fusion: not asked. Error RG001.';
