-- Lists what a run found.
create or replace function pgrag.run_hits(run_id bigint, arm text default null)
returns table (query_id text, found_by text, rank int, uri text, ordinal int, score float8)
language plpgsql stable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgrag._check_run(run_id, '[]', '{}');
    return query
    select h.query_id, h.arm, h.rank, h.uri, h.ordinal, h.score
    from pgrag.run_hit as h
    where h.run_id = run_hits.run_id and (run_hits.arm is null or h.arm = run_hits.arm)
    order by h.arm collate "C", h.query_id collate "C", h.rank;
end
$$;

comment on function pgrag.run_hits(bigint, text) is
'Lists what a run found, by arm (found_by), query_id and rank from 1; arm: of this one only, NULL: of all. For members of pgrag_writer and pgrag_owner. Error RG034 no such run.';
