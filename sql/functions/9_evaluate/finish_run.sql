-- Says that a run is done, and what came out.
create or replace function pgrag.finish_run(run_id bigint, metrics jsonb, figures jsonb default '{}') returns void
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgrag._check_run(run_id, '[]', '{}');
    perform pgrag._check_object('metrics', metrics);
    perform pgrag._check_object('figures', figures);
    update pgrag.run as r
    set metrics = finish_run.metrics, figures = finish_run.figures, finished_at = clock_timestamp()
    where r.run_id = finish_run.run_id;
end
$$;

comment on function pgrag.finish_run(bigint, jsonb, jsonb) is
'Says that a run is done, and what came out; again: replaces it.
metrics: {arm: {measure: mean}}. figures: further keys of the document that pgrag.load_run returns, such as counterfactuals, latency_ms, bands, principals and system. For members of pgrag_writer and pgrag_owner. Errors: RG001 no JSON object, RG034 no such run.';
