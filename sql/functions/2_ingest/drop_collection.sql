-- Deletes a collection for good, with its documents and everything that was made of them.
create or replace function pgrag.drop_collection(name text) returns bigint
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    of_id int := pgrag._collection_id(name);
    documents bigint;
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'drop_collection needs READ COMMITTED, this transaction is %', upper(current_setting('transaction_isolation'))
            using errcode = 'invalid_transaction_state', hint = 'It must see what was written until it had its locks: begin isolation level read committed.';
    end if;
    -- In the order of everybody: the compactor, since what it folds at this moment would not be seen below; those who lock chunks as a whole; then the
    -- collection, documents, and the rest. Whoever writes into the collection meanwhile waits, and then finds it gone.
    perform pg_advisory_xact_lock(hashtextextended('pgrag.compact', 0));
    lock table pgrag.chunk in row exclusive mode;
    perform from pgrag.collection as c where c.collection_id = of_id for update;
    if not found then
        raise exception 'collection "%" does not exist any more', name
            using errcode = 'RG002', hint = 'Another has dropped it at this moment.';
    end if;
    perform from pgrag.document as d where d.collection_id = of_id order by d.uri for update;
    delete from pgrag.document as d where d.collection_id = of_id;
    get diagnostics documents = row_count;
    delete from pgrag.posting as p where p.collection_id = of_id;
    delete from pgrag.lexeme as l where l.collection_id = of_id;
    delete from pgrag.corpus_stat as s where s.collection_id = of_id;
    update pgrag.collection as c set active_space_id = null where c.collection_id = of_id;
    delete from pgrag.collection_space as cs where cs.collection_id = of_id;
    delete from pgrag.acl as a where a.collection_id = of_id;
    delete from pgrag.collection as c where c.collection_id = of_id;
    return documents;
end
$$;

comment on function pgrag.drop_collection(text) is
'Deletes a collection for good, with its documents and everything that was made of them: passages, index, vectors, ACLs, judged queries, runs and history. Returns how many documents it held. Spaces and principals stay. Those who write into it meanwhile wait, and are then refused; pgrag.compact does nothing until the end of the transaction. For members of pgrag_owner. Errors: RG002, 25000 outside READ COMMITTED.';
