-- Keeps at which stage a run lost what answers its queries.
create or replace function pgrag.record_run_evidence(run_id bigint, rows jsonb) returns int
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    stages constant text[] := array['not_ingested', 'not_permitted', 'split', 'representation', 'ann', 'fusion', 'rerank', 'pack', 'kept'];
    wrong text;
    kept int;
begin
    perform pgrag._check_run(run_id, rows, array['query_id', 'uri', 'grade', 'stage']);
    select n.value ->> 'stage' into wrong
    from jsonb_array_elements(rows) as n (value)
    where n.value ->> 'stage' <> all(stages)
    limit 1;
    if found then
        raise exception '"%" is not a stage of evidence', wrong
            using errcode = 'RG001', hint = format('They are %s.', array_to_string(stages, ', '));
    end if;
    insert into pgrag.run_evidence (run_id, query_id, uri, char_start, char_end, grade, stage, rank, detail)
    select record_run_evidence.run_id, n.query_id, n.uri, n.char_start, n.char_end, n.grade, n.stage, n.rank, coalesce(n.detail, '{}')
    from jsonb_to_recordset(rows) as n (
        query_id text, uri text, char_start int, char_end int, grade int, stage text, rank int, detail jsonb
    )
    on conflict on constraint run_evidence_key do update
        set grade = excluded.grade, stage = excluded.stage, rank = excluded.rank, detail = excluded.detail;
    get diagnostics kept = row_count;
    return kept;
exception
    when cardinality_violation then
        raise exception 'a row stands twice in one call'
            using errcode = 'RG001', hint = 'Pass each once; a later call replaces it.';
    when data_exception or check_violation then
        raise exception 'a row is of another form: %', sqlerrm
            using errcode = 'RG001', hint = 'The form of rows: \df+ pgrag.record_run_evidence, or its comment.';
end
$$;

comment on function pgrag.record_run_evidence(bigint, jsonb) is
'Keeps at which stage a run lost what answers its queries, or that it kept it; returns how many rows were kept. A row that is there already, by query_id, uri and span, is replaced.
rows: a JSON array of {"query_id", "uri", "char_start", "char_end", "grade", "stage", "rank": from 1, "detail": {…}}; without a span the whole document is the evidence. Stages, the first that applies: not_ingested, not_permitted, split, representation, ann, fusion, rerank, pack, kept. For members of pgrag_writer and pgrag_owner. Errors: RG001 rows of another form or one twice or another stage, RG034 no such run.';
