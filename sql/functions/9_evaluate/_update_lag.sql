-- Measures how long a new document waits until searches find it, and leaves nothing behind.
create or replace function pgrag._update_lag(
    probes text[], space text default null, embeddings text[] default null
) returns table (arm text, ms float8)
language plpgsql volatile parallel unsafe security invoker
set search_path from current
as $$
declare
    scratch text := 'pgrag eval ' || gen_random_uuid();
    arms text[] := '{}';
    times float8[] := '{}';
    put_id bigint;
    began timestamptz;
    vector halfvec;
    ids bigint[];
    hashes bytea[];
begin
    begin
        perform pgrag.create_collection(scratch);
        if space is not null then
            perform pgrag.attach_space(scratch, space);
        end if;
        for n in 1..coalesce(cardinality(probes), 0) loop
            put_id := pgrag.put_document(scratch, n::text, probes[n], array['public']);
            began := clock_timestamp();
            if not exists (select from pgrag.search_lexical(probes[n], 10, array[scratch]) as s where s.document_id = put_id) then
                raise exception using errcode = 'no_data_found', message = 'a document that was put is not found by its words',
                    hint = 'See what the index lacks: pgrag check';
            end if;
            arms := arms || 'lexical'::text;
            times := times || (extract(epoch from clock_timestamp() - began) * 1000)::float8;
            if space is null then
                continue;
            end if;
            began := clock_timestamp();
            if embeddings is null then
                vector := pgrag.embed_query(probes[n], space);
                began := clock_timestamp();
            else
                vector := embeddings[n]::halfvec;
                select array_agg(h.chunk_id order by h.ordinal), array_agg(h.hash order by h.ordinal) into ids, hashes
                from pgrag.chunk as h
                inner join pgrag.collection as c on c.collection_id = h.collection_id
                where c.name = scratch and h.document_id = put_id;
                perform pgrag.store_vectors(space, ids, hashes, array_fill(embeddings[n], array[cardinality(ids)]));
            end if;
            if vector is null then
                continue;
            end if;
            if not exists (select from pgrag.search_dense(vector, 10, array[scratch], space => _update_lag.space) as s where s.document_id = put_id) then
                raise exception using errcode = 'no_data_found', message = 'a document that was put is not found by its vector',
                    hint = format('See what the space lacks: pgrag space show %s', space);
            end if;
            arms := arms || 'dense'::text;
            times := times || (extract(epoch from clock_timestamp() - began) * 1000)::float8;
        end loop;
        raise exception 'measured' using hint = 'Caught here: nothing of it stays.';
    exception when raise_exception then
        if sqlerrm <> 'measured' then
            raise;
        end if;
    end;
    return query select u.arm, u.ms from unnest(arms, times) as u (arm, ms);
end
$$;

comment on function pgrag._update_lag(text[], text, text[]) is
'Measures how long a new document waits until searches find it, and leaves nothing behind: a row a probe and arm, in milliseconds, from the end of pgrag.put_document to the end of the first search that finds it.
Each probe is put into a collection that is made for it and taken back with it. space: also by vectors of this one, and then writers wait until all are measured. embeddings: the probes'' vectors, `[0.1,...]`, where a model makes them, in the order of probes; what the model takes is not in it. NULL: they are made in SQL, in pgrag.put_document. For pgrag_owner. Errors as of pgrag.put_document and pgrag.store_vectors; P0002 where a probe is not found.';
