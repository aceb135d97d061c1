-- Keeps an evaluation: what was set, and what came out.
create or replace function pgrag.record_run(collection text, name text, settings jsonb, metrics jsonb) returns bigint
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    of_id int := pgrag._collection_id(collection);
    new_id bigint;
begin
    if name is null then
        raise exception 'a run needs a name, got NULL'
            using errcode = 'RG001', hint = 'Say what was tried: lexical, k1=1.5.';
    end if;
    perform pgrag._check_object('settings', settings);
    perform pgrag._check_object('metrics', metrics);
    insert into pgrag.run (collection_id, name, settings, metrics, finished_at)
    select of_id, record_run.name,
        jsonb_build_object(
            'collection', jsonb_build_object(
                'name', c.name, 'analyzer', c.analyzer, 'k1', c.k1, 'b', c.b, 'chunk_tokens', c.chunk_tokens, 'search_settings', c.search_settings
            ),
            'documents', (select count(*) from pgrag.document as d where d.collection_id = of_id),
            'passages', (select coalesce(sum(s.chunks), 0) from pgrag.corpus_stat as s where s.collection_id = of_id),
            'versions', jsonb_build_object(
                'pgrag', (select i.version from pgrag.installation as i),
                'postgresql', current_setting('server_version'),
                'pgvector', (select e.extversion from pg_extension as e where e.extname = 'vector')
            )
        ) || record_run.settings,
        record_run.metrics,
        case when record_run.metrics <> '{}' then clock_timestamp() end
    from pgrag.collection as c
    where c.collection_id = of_id
    returning run_id into new_id;
    return new_id;
end
$$;

comment on function pgrag.record_run(text, text, jsonb, jsonb) is
'Keeps an evaluation: what was set, and what came out; returns its run_id. To the settings it adds the collection''s own, its documents and passages, and the versions of pgrag, PostgreSQL and pgvector, unless they are there. With metrics the run is done; with {} it is under way, until pgrag.finish_run. For members of pgrag_writer and pgrag_owner. Errors: RG001 no name, or settings or metrics that are no JSON object; RG002.';
