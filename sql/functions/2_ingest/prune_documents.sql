-- Takes out documents whose sources have vanished.
create or replace function pgrag.prune_documents(collection text, prefix text, keep text[]) returns int
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    from_id int := pgrag._collection_id(collection);
    pruned int;
begin
    delete from pgrag.document as d
    where d.collection_id = from_id and starts_with(d.uri, prefix)
        and d.uri not in (select k.uri from unnest(keep) as k (uri) where k.uri is not null);
    get diagnostics pruned = row_count;
    return pruned;
end
$$;

comment on function pgrag.prune_documents(text, text, text[]) is
'Takes out documents whose sources have vanished: those whose uri starts with prefix and is not in keep. Returns how many. For members of pgrag_writer and pgrag_owner. Error RG002.';
