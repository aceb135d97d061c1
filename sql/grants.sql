-- Who may do what: everything is taken away first, so that this file is the whole truth.
revoke all on schema pgrag from public;
revoke all on all tables in schema pgrag from public, pgrag_reader, pgrag_writer, pgrag_app;
revoke all on all sequences in schema pgrag from public, pgrag_reader, pgrag_writer, pgrag_app;
revoke all on all functions in schema pgrag from public, pgrag_reader, pgrag_writer, pgrag_app;

grant usage on schema pgrag to pgrag_reader, pgrag_writer, pgrag_app;

-- Readers: content under row-level security, and the functions that read it.
grant select on
pgrag.installation, pgrag.collection, pgrag.collection_space, pgrag.space, pgrag.space_axis, pgrag.encoder_token,
pgrag.document, pgrag.document_text, pgrag.chunk, pgrag.posting, pgrag.lexeme, pgrag.corpus_stat
to pgrag_reader;

-- Writers: all content; principals to name readers by, but no memberships.
grant select, insert, update, delete on
pgrag.collection, pgrag.collection_space, pgrag.document, pgrag.document_text, pgrag.chunk,
pgrag.embed_queue, pgrag.failure, pgrag.judged_query, pgrag.judgement, pgrag.run, pgrag.run_query, pgrag.run_evidence, pgrag.run_hit
to pgrag_writer;
grant select on
pgrag.installation, pgrag.space, pgrag.space_axis, pgrag.space_figures, pgrag.encoder_token, pgrag.posting, pgrag.lexeme, pgrag.corpus_stat,
pgrag.acl, pgrag.acl_entry, pgrag.document_history, pgrag.search_log
to pgrag_writer;
grant select, insert on pgrag.principal to pgrag_writer;
grant insert on pgrag.staging to pgrag_writer;

select pgrag._grant_functions();
select pgrag._embedding_table(s.space_id) from pgrag.space as s;
