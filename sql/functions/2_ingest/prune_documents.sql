-- Takes out documents whose sources have vanished.
create or replace function pgrag.prune_documents(
    collection text, prefix text, keep text[], refuse_most boolean default false
) returns int
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    from_id int := pgrag._hold_collection(collection);
    present int;
    pruned int;
begin
    if prefix is null or keep is null then
        raise exception 'prefix and keep must not be NULL'
            using errcode = 'RG001', hint = 'Pass the uris to keep; an empty array removes every document under prefix.';
    end if;
    -- In the order in which load_staged comes by, so that neither waits for the other in a circle.
    perform from pgrag.document as d
    where d.collection_id = from_id and starts_with(d.uri, prefix)
        and d.uri not in (select k.uri from unnest(keep) as k (uri) where k.uri is not null)
    order by d.uri
    for update;
    select count(*) into present from pgrag.document as d where d.collection_id = from_id and starts_with(d.uri, prefix);
    delete from pgrag.document as d
    where d.collection_id = from_id and starts_with(d.uri, prefix)
        and d.uri not in (select k.uri from unnest(keep) as k (uri) where k.uri is not null);
    get diagnostics pruned = row_count;
    if refuse_most and pruned > 10 and pruned * 2 > present then
        raise exception 'pruning would remove % of % documents', pruned, present
            using errcode = 'RG014', hint = 'If they shall go, say so: pgrag ingest --prune --prune-most; else name the folders that hold them.';
    end if;
    return pruned;
end
$$;

comment on function pgrag.prune_documents(text, text, text[], boolean) is
'Takes out documents whose sources have vanished: those whose uri starts with prefix and is not in keep. Returns how many. refuse_most: refuse, and remove nothing, where more than half of them and more than ten would go. For members of pgrag_writer and pgrag_owner. Errors: RG001 prefix or keep is NULL, RG002, RG014 most would go.';
