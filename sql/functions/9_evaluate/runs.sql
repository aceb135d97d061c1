-- Lists evaluations that were kept.
create or replace function pgrag.runs(collection text default null)
returns table (
    run_id bigint, name text, collection_name text, kind text, started_at timestamptz, finished_at timestamptz, queries bigint, metrics jsonb
)
language plpgsql stable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    of_id int := case when collection is not null then pgrag._collection_id(collection) end;
begin
    return query
    select r.run_id, r.name, c.name, coalesce(r.settings ->> 'kind', 'run'), r.started_at, r.finished_at,
        (select count(distinct q.query_id) from pgrag.run_query as q where q.run_id = r.run_id and q.metrics - 'ann_recall@10' <> '{}'), r.metrics
    from pgrag.run as r
    inner join pgrag.collection as c on c.collection_id = r.collection_id
    where of_id is null or r.collection_id = of_id
    order by r.run_id desc;
end
$$;

comment on function pgrag.runs(text) is
'Lists evaluations that were kept, the newest first; of one collection, or of all.
kind: `run`, `gate` where two spaces were compared, `tune` where settings were, `answers` where answers were judged. finished_at: NULL where it is under way or was interrupted. queries: those that counted, which have a figure that needs a judgement. For members of pgrag_writer and pgrag_owner. Error RG002.';
