-- Reads an evaluation that was kept, as one document.
create or replace function pgrag.load_run(run_id bigint) returns jsonb
language plpgsql stable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgrag._check_run(run_id, '[]', '{}');
    return (
        with evidence as (
            select e.query_id,
                jsonb_agg(
                    jsonb_build_object(
                        'uri', e.uri, 'char_start', e.char_start, 'char_end', e.char_end, 'grade', e.grade,
                        'stage', e.stage, 'rank', e.rank, 'detail', e.detail
                    ) order by e.uri collate "C", e.char_start nulls first, e.char_end
                ) as list
            from pgrag.run_evidence as e
            where e.run_id = load_run.run_id
            group by e.query_id
        ),
        measured as (
            -- What is said of a query is the same for each arm.
            select q.query_id, max(q.query) as query, max(q.principals) as principals, max(q.visible) as visible,
                jsonb_object_agg(q.arm, q.metrics) as metrics, jsonb_object_agg(q.arm, q.stages_ms) as stages_ms
            from pgrag.run_query as q
            where q.run_id = load_run.run_id
            group by q.query_id
        )
        select jsonb_build_object(
                'run_id', r.run_id, 'name', r.name, 'collection', c.name, 'started_at', r.started_at, 'finished_at', r.finished_at,
                'settings', r.settings, 'metrics', r.metrics
            )
            || jsonb_build_object(
                'queries', (
                    select coalesce(jsonb_agg(
                        jsonb_build_object(
                            'query_id', coalesce(m.query_id, e.query_id), 'query', m.query,
                            'principals', to_jsonb(coalesce(m.principals, '{}')), 'visible', m.visible,
                            'share', m.visible / nullif(case jsonb_typeof(r.settings -> 'passages') when 'number' then (r.settings ->> 'passages')::float8 end, 0),
                            'metrics', coalesce(m.metrics, '{}'), 'stages_ms', coalesce(m.stages_ms, '{}'),
                            'evidence', coalesce(e.list, '[]')
                        ) order by coalesce(m.query_id, e.query_id) collate "C"
                    ), '[]')
                    from measured as m
                    full join evidence as e on e.query_id = m.query_id
                ),
                'ledger', (
                    select coalesce(jsonb_object_agg(l.stage, l.count), '{}')
                    from (select e.stage, count(*) as count from pgrag.run_evidence as e where e.run_id = load_run.run_id group by e.stage) as l
                )
            )
            || r.figures
        from pgrag.run as r
        inner join pgrag.collection as c on c.collection_id = r.collection_id
        where r.run_id = load_run.run_id
    );
end
$$;

comment on function pgrag.load_run(bigint) is
'Reads an evaluation that was kept, as one document: the form that reports and comparisons read.
{"run_id", "name", "collection", "started_at", "finished_at", "settings", "metrics": {arm: {measure: mean}}, "queries": [{"query_id", "query", "principals", "visible", "share": visible of all passages, "metrics": {arm: {measure: value}}, "stages_ms": {arm: {stage: milliseconds}}, "evidence": [{"uri", "char_start", "char_end", "grade", "stage", "rank", "detail"}]}], "ledger": {stage: count}} and the figures of pgrag.finish_run. What is not known is null. For members of pgrag_writer and pgrag_owner. Error RG034 no such run.';
