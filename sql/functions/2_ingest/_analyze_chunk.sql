-- Keeps what is derived from a chunk's text: tsvector, length and hash.
create or replace function pgrag._analyze_chunk() returns trigger
language plpgsql volatile parallel unsafe security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    new.hash := pgrag._chunk_hash(new.context, new.content);
    -- Neither the text nor what is derived from it was touched: nothing to do.
    if tg_op = 'UPDATE' and new.hash = old.hash and new.tsv = old.tsv and new.lexeme_count = old.lexeme_count then
        return new;
    end if;
    select pgrag.analyze(c.analyzer, new.context || E'\n' || new.content) into strict new.tsv
    from pgrag.collection as c where c.collection_id = new.collection_id;
    select least(coalesce(sum(least(cardinality(l.positions), 255)), 0), 32767) into new.lexeme_count
    from unnest(new.tsv) as l;
    return new;
end
$$;

comment on function pgrag._analyze_chunk() is
'Keeps what is derived from a chunk''s text: tsv, lexeme_count and hash, whatever the writer sent for them; an update that touches none of them analyses nothing. Row trigger on chunk.';
