-- Keeps what a run found.
create or replace function pgrag.record_run_hits(run_id bigint, rows jsonb) returns int
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    kept int;
begin
    perform pgrag._check_run(run_id, rows, array['query_id', 'arm', 'rank', 'uri', 'ordinal', 'score']);
    insert into pgrag.run_hit (run_id, query_id, arm, rank, uri, ordinal, score)
    select record_run_hits.run_id, n.query_id, n.arm, n.rank, n.uri, n.ordinal, n.score
    from jsonb_to_recordset(rows) as n (query_id text, arm text, rank int, uri text, ordinal int, score float8)
    on conflict on constraint run_hit_pkey do update
        set uri = excluded.uri, ordinal = excluded.ordinal, score = excluded.score;
    get diagnostics kept = row_count;
    return kept;
exception
    when cardinality_violation then
        raise exception 'a row stands twice in one call'
            using errcode = 'RG001', hint = 'Pass each once; a later call replaces it.';
    when data_exception or check_violation then
        raise exception 'a row is of another form: %', sqlerrm
            using errcode = 'RG001', hint = 'The form of rows: \df+ pgrag.record_run_hits, or its comment.';
end
$$;

comment on function pgrag.record_run_hits(bigint, jsonb) is
'Keeps what a run found; returns how many rows were kept. A row that is there already, by query_id, arm and rank, is replaced.
rows: a JSON array of {"query_id", "arm", "rank": from 1, "uri", "ordinal", "score"}. For members of pgrag_writer and pgrag_owner. Errors: RG001 rows of another form or one twice, RG034 no such run.';
