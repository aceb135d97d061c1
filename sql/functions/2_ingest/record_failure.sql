-- Writes down why a document could not be taken in.
create or replace function pgrag.record_failure(collection text, stage text, uri text, reason text) returns void
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if stage is null or stage not in ('parse', 'chunk', 'load', 'embed') then
        raise exception 'stage must be parse, chunk, load or embed, got "%"', coalesce(stage, 'NULL')
            using errcode = 'RG001', hint = 'Name the stage that failed.';
    end if;
    -- The end of a path tells more than its beginning, and what is longer fits into no index.
    insert into pgrag.failure (collection_id, stage, uri, reason)
    values (
        pgrag._collection_id(collection),
        stage,
        case when octet_length(uri) > 2000 then '…' || right(uri, 499) else coalesce(uri, '') end,
        coalesce(reason, '')
    )
    on conflict on constraint failure_uri_key do update set reason = excluded.reason, failed_at = now();
end
$$;

comment on function pgrag.record_failure(text, text, text, text) is
'Writes down why a document could not be taken in; replaces the earlier reason of the same document and stage (parse, chunk, load or embed). Of a uri of over 2,000 bytes the last 499 characters are kept. For members of pgrag_writer and pgrag_owner. Errors: RG001 no such stage, RG002.';
