-- Tells what a dense search costs on this server, exactly and through the index.
create or replace function pgrag._dense_costs(
    of_space pgrag.space, visible bigint, vectors float8, by_acl boolean, lists int,
    out exact_us float8, out visible_us float8, out effort_us float8, out least_effort int
) returns record
language plpgsql stable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    found jsonb := of_space.calibration;
    -- Microseconds: of a vector that is compared, of one that is only found to be hidden, of one that the index gives. What is usual,
    -- where pgrag.calibrate_space did not measure.
    compared_us float8 := coalesce((found ->> 'exact_us')::float8, 0.2 + 0.0005 * of_space.dimension);
    hidden_us float8 := coalesce((found ->> 'hidden_us')::float8, 0.1);
    index_us float8 := coalesce((found ->> 'index_us')::float8, case of_space.index_kind when 'hnsw' then 6 + 0.035 * of_space.dimension else 1 end);
begin
    -- Under row-level security.
    visible_us := 1.2 * compared_us * visible;
    -- Read in pieces where it is by ACL.
    exact_us := case
        when by_acl then 2.2 * compared_us * visible
        else visible_us + hidden_us * (vectors - visible)
    end;
    effort_us := case of_space.index_kind when 'hnsw' then index_us else index_us * vectors / greatest(lists, 1) end;
    least_effort := coalesce((found ->> 'effort')::int, case of_space.index_kind when 'hnsw' then 400 else 10 end);
end
$$;

comment on function pgrag._dense_costs(pgrag.space, bigint, float8, boolean, int) is
'Tells what a dense search costs on this server, exactly and through the index, in microseconds: as pgrag.calibrate_space measured, else as is usual.
visible: passages that the caller may see; vectors: all of the space. by_acl: whether they are found by their ACLs, or among all. lists: of ivfflat.
exact_us: of comparing all that is visible; visible_us: the part of it that doesn''t depend on hidden rows, if all are gone through. effort_us: of ef_search or probes, for each. least_effort: what reaches the recall for the ten nearest.';
