-- Finds a collection by name for who writes its documents, and keeps it from being dropped until the end of the transaction.
create or replace function pgrag._hold_collection(collection text) returns int
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    held_id int := pgrag._collection_id(collection);
begin
    -- What a document's foreign key asks for later, asked before documents are locked: pgrag.drop_collection has it in this order.
    perform from pgrag.collection as c where c.collection_id = held_id for key share;
    if not found then
        held_id := pgrag._collection_id(collection);
    end if;
    return held_id;
end
$$;

comment on function pgrag._hold_collection(text) is
'Finds a collection by name for who writes its documents, and keeps it from being dropped until the end of the transaction. Waits for who is dropping it. For members of pgrag_writer and pgrag_owner. Error RG002.';
