-- Analyses chunks of a collection again, a batch at a time, where their analyzer is another or gives something else now.
create or replace function pgrag.reindex_chunks(collection text, after bigint default 0, batch int default 1000)
returns bigint
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    in_id int := pgrag._collection_id(collection);
    last_id bigint;
    changed bigint[];
    one bigint;
begin
    perform pgrag._check_range('batch', batch, 1, 100000);
    with due as materialized (
        select c.chunk_id, c.hash, c.context, c.content, c.tsv, c.lexeme_count, c.analyzer,
            coalesce(pgrag._language_analyzer(t.language), o.analyzer) as due_analyzer
        from pgrag.chunk as c
        inner join pgrag.collection as o on o.collection_id = c.collection_id
        left join pgrag.document as t on t.collection_id = c.collection_id and t.document_id = c.document_id
        where c.collection_id = in_id and c.chunk_id > after
        order by c.chunk_id
        limit batch
    )

    select max(d.chunk_id), array_agg(d.chunk_id order by d.chunk_id) filter (
        where d.hash <> pgrag._chunk_hash(d.context, d.content)
            or d.analyzer <> d.due_analyzer
            or d.tsv is distinct from pgrag._try_analyze(d.due_analyzer, d.context || E'\n' || d.content)
            or d.lexeme_count <> (
                select least(coalesce(sum(least(cardinality(l.positions), 255)), 0), 32767) from unnest(d.tsv) as l
            )
    ) into last_id, changed
    from due as d;
    if changed is not null then
        -- Writers lock documents in the order of their uris, and then chunks; so does this.
        perform from pgrag.document as d
        where d.collection_id = in_id and d.document_id in (
            select c.document_id from pgrag.chunk as c where c.collection_id = in_id and c.chunk_id = any(changed)
        )
        order by d.uri
        for no key update of d;
        -- The trigger analyses whatever was written here; lexeme_count -1 is never right, so that it does.
        begin
            update pgrag.chunk as c set lexeme_count = -1 where c.collection_id = in_id and c.chunk_id = any(changed);
        exception when sqlstate 'RG013' then
            -- One that its analyzer makes too much of must not stop the others.
            foreach one in array changed loop
                begin
                    update pgrag.chunk as c set lexeme_count = -1 where c.collection_id = in_id and c.chunk_id = one;
                exception when sqlstate 'RG013' then
                    raise warning 'chunk % of % stays analysed as it was: %', one, (
                        select d.uri
                        from pgrag.chunk as c
                        inner join pgrag.document as d on d.collection_id = c.collection_id and d.document_id = c.document_id
                        where c.collection_id = in_id and c.chunk_id = one
                    ), sqlerrm
                        using hint = 'Put the document again in smaller chunks.';
                end;
            end loop;
        end;
    end if;
    return last_id;
end
$$;

comment on function pgrag.reindex_chunks(text, bigint, int) is
'Analyses chunks of a collection again, in the order of their ids, where their analyzer (that of the document''s language, else the collection''s) is another or gives something else now; returns the last chunk_id of the batch, NULL where none was left.
after: the chunk_id that the call before returned; 0: from the beginning. batch: chunks looked at, 1 to 100,000. Chunks that are right are read and not written, so beginning again costs little. Commit after each call: until the last, old and new analysis stand side by side.
A chunk of which its analyzer makes more than one chunk can hold stays as it was, with a warning, and pgrag.check goes on reporting it. Readers don''t wait; writers wait for the documents of one batch. For members of pgrag_writer and pgrag_owner. Errors: RG001, RG002.';
