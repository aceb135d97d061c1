-- Counts the blocks that pgrag's tables and indexes were read from: the server's cache, or beyond it.
create or replace function pgrag.cache_counts(out hits bigint, out reads bigint) returns record
language plpgsql volatile parallel restricted security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    perform pg_stat_force_next_flush();
    perform pg_stat_clear_snapshot();
    select
        coalesce(sum(coalesce(s.heap_blks_hit, 0) + coalesce(s.idx_blks_hit, 0) + coalesce(s.toast_blks_hit, 0) + coalesce(s.tidx_blks_hit, 0)), 0),
        coalesce(sum(coalesce(s.heap_blks_read, 0) + coalesce(s.idx_blks_read, 0) + coalesce(s.toast_blks_read, 0) + coalesce(s.tidx_blks_read, 0)), 0)
    into hits, reads
    from pg_statio_all_tables as s
    where s.schemaname = 'pgrag';
end
$$;

comment on function pgrag.cache_counts() is
'Counts the blocks that pgrag''s tables and indexes were read from, since the server''s statistics began: hits, found in shared_buffers, and reads, asked of the operating system, which may have them in memory too. Of all sessions; what a session did counts once its transaction has ended. For members of pgrag_writer and pgrag_owner.';
