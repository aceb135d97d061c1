-- Tells how a dense search would go in a space that need not be there, for pgrag plan.
create or replace function pgrag._plan_dense(
    space_as jsonb, k int, visible bigint, vectors bigint, lists int,
    out exact_ms float8, out index_ms float8, out effort int, out reason text
) returns record
language plpgsql stable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    of_space pgrag.space := jsonb_populate_record(null::pgrag.space, space_as);
    by_acl boolean := visible < 0.5 * vectors;
    about record;
begin
    select d.* into about from pgrag._dense_costs(of_space, visible, vectors, by_acl, lists) as d;
    select e.effort, e.reason into effort, reason
    from pgrag._index_effort(of_space, k, visible, vectors, by_acl, false, lists) as e;
    exact_ms := about.exact_us / 1000;
    index_ms := case when effort > 0 then about.effort_us * effort / 1000 end;
end
$$;

comment on function pgrag._plan_dense(jsonb, int, bigint, bigint, int) is
'Tells how a dense search would go in a space that need not be there, for pgrag plan: milliseconds of comparing all that is visible, of the index, which is NULL where it would not be tried, its effort, and why.
space_as: columns of pgrag.space. visible: passages that the caller may see, of all vectors. lists: of ivfflat, 1 for hnsw, NULL for none.';
