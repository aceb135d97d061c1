-- Builds the postings, statistics and lexemes of a collection anew from its chunks.
create or replace function pgrag.rebuild_postings(collection text) returns bigint
language plpgsql volatile parallel unsafe security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    of_id int := pgrag._collection_id(collection);
    built bigint;
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'rebuild_postings needs READ COMMITTED, this transaction is %', upper(current_setting('transaction_isolation'))
            using errcode = 'invalid_transaction_state', hint = 'Its snapshot must be taken after the lock: begin isolation level read committed.';
    end if;
    -- No compactor, then no writer: what is read below is what will be there. Readers go on with the old index until the commit.
    perform pg_advisory_xact_lock(hashtextextended('pgrag.compact', 0));
    lock table pgrag.chunk in share row exclusive mode;

    delete from pgrag.corpus_stat as s where s.collection_id = of_id;
    delete from pgrag.lexeme as l where l.collection_id = of_id;
    delete from pgrag.posting as p where p.collection_id = of_id;

    insert into pgrag.corpus_stat (collection_id, acl_id, chunks, lexemes, analyzer)
    select of_id, c.acl_id, count(*), sum(c.lexeme_count), c.analyzer
    from pgrag.chunk as c
    where c.collection_id = of_id
    group by c.acl_id, c.analyzer;

    insert into pgrag.lexeme (collection_id, acl_id, lexeme)
    select distinct of_id, c.acl_id, l.lexeme collate "C"
    from pgrag.chunk as c
    cross join lateral unnest(c.tsv) as l
    where c.collection_id = of_id;

    insert into pgrag.posting (term, collection_id, acl_id, n, sign, max_tf, min_ratio, entries)
    select w.term, of_id, w.acl_id, count(*), 1, max(w.tf), min(w.length / w.tf),
        array_agg(pgrag._pack_posting(w.chunk_id, w.tf, w.length) order by w.chunk_id)
    from (
        select c.acl_id, c.chunk_id, c.lexeme_count::smallint as length, h.term, least(cardinality(l.positions), 255)::smallint as tf,
            row_number() over (partition by h.term, c.acl_id order by c.chunk_id) as place
        from pgrag.chunk as c
        cross join lateral unnest(c.tsv) as l
        cross join lateral (select hashtextextended(l.lexeme collate "C", 0) as term) as h
        where c.collection_id = of_id
    ) as w
    group by w.term, w.acl_id, (w.place - 1) / pgrag._run_length();

    select count(*) into built from pgrag.chunk as c where c.collection_id = of_id;
    return built;
end
$$;

comment on function pgrag.rebuild_postings(text) is
'Builds the postings, statistics and lexemes of a collection anew from the tsvectors of its chunks, in this transaction; returns how many chunks there are.
Repairs what pgrag.check reports as posting, run, statistic or lexeme; run pgrag.reindex_chunks before it where tsv, hash or length are reported too. Writers of any collection wait until the end of the transaction, searches go on with the old index.
Definer; for members of pgrag_writer and pgrag_owner. Errors: RG002, 25000 outside READ COMMITTED.';
