-- Keeps what a run measured of its queries.
create or replace function pgrag.record_run_queries(run_id bigint, rows jsonb) returns int
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    kept int;
begin
    perform pgrag._check_run(run_id, rows, array['query_id', 'arm']);
    insert into pgrag.run_query (run_id, query_id, arm, query, principals, visible, metrics, stages_ms)
    select record_run_queries.run_id, n.query_id, n.arm, coalesce(n.query, q.query), coalesce(n.principals, q.principals, '{}'), n.visible,
        coalesce(n.metrics, '{}'), coalesce(n.stages_ms, '{}')
    from jsonb_to_recordset(rows) as n (
        query_id text, arm text, query text, principals text[], visible bigint, metrics jsonb, stages_ms jsonb
    )
    inner join pgrag.run as r on r.run_id = record_run_queries.run_id
    left join pgrag.judged_query as q on q.collection_id = r.collection_id and q.query_id = n.query_id
    on conflict on constraint run_query_pkey do update
        set query = excluded.query, principals = excluded.principals, visible = excluded.visible,
            metrics = excluded.metrics, stages_ms = excluded.stages_ms;
    get diagnostics kept = row_count;
    return kept;
exception
    when cardinality_violation then
        raise exception 'a row stands twice in one call'
            using errcode = 'RG001', hint = 'Pass each once; a later call replaces it.';
    when data_exception or check_violation then
        raise exception 'a row is of another form: %', sqlerrm
            using errcode = 'RG001', hint = 'The form of rows: \df+ pgrag.record_run_queries, or its comment.';
end
$$;

comment on function pgrag.record_run_queries(bigint, jsonb) is
'Keeps what a run measured of its queries; returns how many rows were kept. A row that is there already, by query_id and arm, is replaced.
rows: a JSON array of {"query_id", "arm", "query", "principals": [name], "visible": passages that the asker may see, "metrics": {measure: value}, "stages_ms": {stage: milliseconds}}; without query and principals they are those of the judged query. For members of pgrag_writer and pgrag_owner. Errors: RG001 rows of another form or one twice, RG034 no such run.';
