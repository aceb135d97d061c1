-- Cuts documents of a collection into passages again, a batch at a time.
create or replace function pgrag.rechunk_documents(collection text, after bigint default 0, batch int default 100) returns bigint
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    in_id int := pgrag._hold_collection(collection);
    batch_id uuid := gen_random_uuid();
    ids bigint[];
begin
    perform pgrag._check_range('batch', batch, 1, 100000);
    loop
        -- In the order in which load_staged locks; nobody changes them between being read and being written.
        select array_agg(h.document_id) into ids
        from (
            select d.document_id from pgrag.document as d
            where d.collection_id = in_id and d.document_id in (
                select n.document_id from pgrag.document as n
                where n.collection_id = in_id and n.document_id > after
                order by n.document_id
                limit batch
            )
            order by d.uri
            for update
        ) as h;
        -- All of a batch may have been deleted meanwhile, and more come after it.
        exit when ids is not null or not exists (select from pgrag.document as d where d.collection_id = in_id and d.document_id > after);
    end loop;
    if ids is null then
        return null;
    end if;
    perform pgrag._stage_documents(collection, batch_id, after, batch, c.chunk_tokens, ids)
    from pgrag.collection as c where c.collection_id = in_id;
    perform pgrag.load_staged(collection, batch_id);
    return (select max(i.id) from unnest(ids) as i (id));
end
$$;

comment on function pgrag.rechunk_documents(text, bigint, int) is
'Cuts documents of a collection into passages again, by its chunk_tokens and as pgrag.put_document does, in the order of their ids; returns the last document_id of the batch, NULL where none was left.
after: the document_id that the call before returned; 0: from the beginning. batch: documents, 1 to 100,000. Commit after each call: until the last, old and new passages stand side by side. A passage that stays the same keeps its id and its vectors; others are embedded anew. Pages are not known afterwards: files that have them are better ingested again. For members of pgrag_writer and pgrag_owner. Errors: RG001, RG002.';
