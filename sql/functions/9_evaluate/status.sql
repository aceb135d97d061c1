-- Counts what is installed, what it holds and what waits.
create or replace function pgrag.status() returns jsonb
language sql stable parallel safe security invoker
begin atomic
select jsonb_build_object(
    'version', (select i.version from pgrag.installation as i),
    'collections', (select count(*) from pgrag.collection),
    'documents', (select count(*) from pgrag.document),
    'chunks', (select coalesce(sum(s.chunks), 0) from pgrag.corpus_stat as s),
    'spaces', (select count(*) from pgrag.space),
    'waiting_for_vectors', (select count(*) from pgrag.embed_queue),
    'failures', (select count(*) from pgrag.failure)
);
end;

comment on function pgrag.status() is
'Counts what is installed, what it holds and what waits: version, collections, documents, chunks, spaces, waiting_for_vectors (chunks times spaces) and failures (dead letters). For members of pgrag_writer and pgrag_owner.';
