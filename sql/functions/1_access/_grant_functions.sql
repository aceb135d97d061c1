-- Grants each function to the roles that its folder and name say.
create or replace function pgrag._grant_functions() returns void
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    -- What only writers call. Every other function is for readers too, since a reader's query may reach it.
    for_writers text[] := array[
        '_acl_id', '_build_bytes', '_build_key', '_check_chunks', '_check_language', '_check_postings', '_check_readers', '_check_run', '_check_statistics', '_check_vectors', '_hold_collection',
        '_judged_spans', '_plan_dense', 'drop_run', 'export_judged', 'finish_run', 'forget_judged', 'load_run', 'record_run_evidence', 'record_run_hits', 'record_run_queries', 'run_hits', 'runs',
        '_collection_sizes', '_embed_static_document', '_posting_upkeep', '_space_indexes', '_unpack_postings', 'attach_space', 'check', 'claim_chunks',
        'cache_counts', 'collection_digest', 'collection_settings', 'compact', 'corpus_figures', 'create_collection', 'create_principals', 'delete_document', 'embed_pending', 'evidence_presence', 'fail_chunk', 'import_judged',
        'judged_queries', 'load_staged', 'prune_documents', 'put_document', 'rebuild_postings', 'record_failure', 'record_run', 'rechunk_documents', 'reindex_chunks', 'release_chunks', 'reuse_vectors',
        '_stage_documents', 'set_analyzer', 'set_bm25', 'set_chunk_tokens', 'set_readers', 'set_search_settings', 'space_backlog', 'space_passport', 'space_progress', 'spaces', 'status', 'store_vectors', 'tunable_settings', 'unchanged',
        'unknown_readers'
    ];
    for_owner text[] := array[
        '_access_version', '_acl_bits_stamp', '_check_refit', '_begin_build', '_build_progress', '_compute_acl_bits', '_content_policies',
        '_embedding_table', '_end_build', '_fits_build', '_fold_logs', '_grant_functions', '_merge_runs', '_open_acl_ids', '_private_policies', '_sample_queries', '_space_lack',
        '_update_lag', '_write_cost', 'activate_space', 'add_member', 'calibrate_space', 'center_codes', 'create_space', 'drop_collection', 'drop_space', 'load_encoder_tokens', 'note_figures', 'open_space',
        'pause_space', 'ready_space', 'remove_member', 'resume_space', 'retire_space', 'sample_passages', 'set_query_encoder'
    ];
    made record;
begin
    for made in
        select p.oid::regprocedure as signature, p.proname::text as name
        from pg_proc as p
        where p.pronamespace = 'pgrag'::regnamespace and p.prorettype <> 'trigger'::regtype
    loop
        if made.name = any(for_owner) then
            continue;
        elsif made.name = any(for_writers) then
            execute format('grant execute on function %s to pgrag_writer', made.signature);
        else
            execute format('grant execute on function %s to pgrag_reader, pgrag_writer', made.signature);
        end if;
    end loop;
end
$$;

comment on function pgrag._grant_functions() is
'Grants each function to the roles that need it: readers by default, writers or the owner alone where the lists here say so. Called by grants.sql.';
