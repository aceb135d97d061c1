-- Counts what passages take in this database, for who plans how much more will fit.
create or replace function pgrag.corpus_figures() returns jsonb
language sql stable parallel safe security invoker
begin atomic
with chunks as (
    select count(*) as chunks, coalesce(sum(h.token_count), 0) as tokens, count(distinct h.acl_id) as acls
    from pgrag.chunk as h
),

pairs as (
    select sum(r.n) as postings, count(*) as runs
    from pgrag.posting as r
    group by r.collection_id, r.term, r.acl_id
),

postings as (
    select coalesce(sum(p.postings), 0) as postings, coalesce(sum(p.runs), 0) as runs, count(*) as pairs from pairs as p
)

select jsonb_build_object(
    'chunks', c.chunks, 'tokens', c.tokens, 'acls', c.acls, 'postings', p.postings, 'runs', p.runs, 'pairs', p.pairs,
    'chunk_bytes', pg_total_relation_size('pgrag.chunk'),
    'document_bytes', pg_total_relation_size('pgrag.document') + pg_total_relation_size('pgrag.document_text')
    + pg_total_relation_size('pgrag.document_history'),
    'posting_bytes', pg_total_relation_size('pgrag.posting'),
    'lexeme_bytes', pg_total_relation_size('pgrag.lexeme'),
    'maintenance_work_mem', pg_size_bytes(current_setting('maintenance_work_mem')),
    'shared_buffers', pg_size_bytes(current_setting('shared_buffers'))
)
from chunks as c
cross join postings as p;
end;

comment on function pgrag.corpus_figures() is
'Counts what passages take in this database, for who plans how much more will fit: chunks, tokens in them, acls that they are under, postings, runs (rows) of these, pairs of a term and an ACL, and the bytes of the tables with their indexes and dead rows. maintenance_work_mem and shared_buffers are the server''s, in bytes. Reads the whole index, which takes a second for some million rows. For members of pgrag_writer and pgrag_owner, who see all of it.';
