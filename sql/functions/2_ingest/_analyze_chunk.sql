-- Keeps what is derived from a chunk's text and its document's language: tsvector, analyzer, length and hash.
create or replace function pgrag._analyze_chunk() returns trigger
language plpgsql volatile parallel unsafe security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    new.hash := pgrag._chunk_hash(new.context, new.content);
    -- Neither the text nor the document nor what is derived from them was touched: nothing to do.
    if tg_op = 'UPDATE' and new.hash = old.hash and new.tsv = old.tsv and new.analyzer = old.analyzer
        and new.lexeme_count = old.lexeme_count and new.document_id = old.document_id
    then
        return new;
    end if;
    select coalesce(pgrag._language_analyzer(d.language), c.analyzer) into new.analyzer
    from pgrag.collection as c
    left join pgrag.document as d on d.collection_id = c.collection_id and d.document_id = new.document_id
    where c.collection_id = new.collection_id;
    if not found then
        raise exception 'collection % does not exist', coalesce(new.collection_id::text, 'NULL')
            using errcode = 'RG002', hint = 'Take its collection_id from pgrag.collection, or use pgrag.put_document, which takes its name.';
    end if;
    new.tsv := pgrag.analyze(new.analyzer, new.context || E'\n' || new.content);
    select least(coalesce(sum(least(cardinality(l.positions), 255)), 0), 32767) into new.lexeme_count
    from unnest(new.tsv) as l;
    return new;
end
$$;

comment on function pgrag._analyze_chunk() is
'Keeps what is derived from a chunk''s text and its document''s language: tsv, analyzer, lexeme_count and hash, whatever the writer sent for them; an update that touches none of them analyses nothing. Row trigger on chunk. Error RG002: no such collection.
It locks no document, since whoever changes readers locks the document first and its chunks then. So where one transaction changes document.language itself while another inserts or edits a chunk of that document, the chunk may keep the analyzer of the language before: `pgrag reindex --lexical` puts it right, and pgrag.check() shows it. put_document and load_staged lock the document first; with these it can''t happen.';
