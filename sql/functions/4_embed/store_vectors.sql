-- Writes the vectors that a worker made, where the text is still what it encoded.
create or replace function pgrag.store_vectors(
    space text, chunk_ids bigint[], hashes bytea[], embeddings text[], fingerprint text default null
) returns int
language plpgsql volatile parallel unsafe security definer
set search_path from current
as $$
declare
    in_space int;
    of_space pgrag.space;
    kept text;
    twice bigint;
    wrong record;
    written int;
begin
    -- Who drops a space locks chunks first: so from here on it stays, or it is gone and said to be.
    lock table pgrag.chunk in access share mode;
    in_space := pgrag._space_id(space);
    select * into strict of_space from pgrag.space as s where s.space_id = in_space;
    perform pgrag.check_space(space, of_space.model, of_space.model_dimension, fingerprint);
    if cardinality(chunk_ids) <> cardinality(hashes) or cardinality(chunk_ids) <> cardinality(embeddings) then
        raise exception 'got % chunk_ids, % hashes and % embeddings', cardinality(chunk_ids), cardinality(hashes), cardinality(embeddings)
            using errcode = 'RG030', hint = 'Pass one of each per chunk, in the same order.';
    end if;
    select g.chunk_id into twice from unnest(chunk_ids) as g (chunk_id) group by g.chunk_id having count(*) > 1 order by g.chunk_id limit 1;
    if found then
        raise exception 'chunk % stands twice in one call, and has one vector', twice
            using errcode = 'RG007', hint = 'Pass each chunk of pgrag.claim_chunks once.';
    end if;
    begin
        select g.chunk_id, vector_dims(g.v) as dimension, vector_norm(g.v) as norm into wrong
        from (select u.chunk_id, u.embedding::vector as v from unnest(chunk_ids, embeddings) as u (chunk_id, embedding)) as g
        where case
            when vector_dims(g.v) <> of_space.model_dimension then true
            when of_space.normalised and abs(vector_norm(g.v) - 1) > 0.01 then true
            -- As it will be kept: half precision rounds what is tiny to zero.
            when of_space.model_dimension > of_space.dimension then
                l2_norm(pgrag._prefix(g.v, of_space.dimension, of_space.normalised)::halfvec) = 0
            else l2_norm(g.v::halfvec) = 0
        end
        limit 1;
    exception
        -- What isn't a vector at all, or holds NaN or infinity.
        when data_exception then
            raise exception 'space "%" holds vectors of %, got what is none: %', space, of_space.model, sqlerrm
                using errcode = 'RG031', hint = 'Embed with the model that the passport names; see whether it works for this text.';
    end;
    if wrong.chunk_id is not null then
        if wrong.dimension <> of_space.model_dimension then
            raise exception 'space "%" holds vectors of % of dimension %, got dimension % for chunk %',
                space, of_space.model, of_space.model_dimension, wrong.dimension, wrong.chunk_id
                using errcode = 'RG031', hint = 'Embed with the model that the passport names.';
        end if;
        if not of_space.normalised or abs(wrong.norm - 1) <= 0.01 then
            raise exception 'space "%" keeps % numbers of a vector of %, and those of chunk % are zero, and have no direction',
                space, of_space.dimension, of_space.model, wrong.chunk_id
                using errcode = 'RG031', hint = 'Pass NULL for a text that has no vector.';
        end if;
        raise exception 'space "%" holds vectors of % of length 1, got length % for chunk %',
            space, of_space.model, wrong.norm, wrong.chunk_id
            using errcode = 'RG031', hint = 'Normalise the vectors; half precision must be normalised again.';
    end if;
    kept := case of_space."precision" when 'vector' then 'vector' else 'halfvec' end;
    -- Locked as every other writer locks them, documents by uri and then their chunks: one that is moved, changed or
    -- deleted at this moment is waited for, and then has the ACL that its vector must have, or is passed over. Without
    -- the document, put_document would hold the queue's row and wait for the vector while this waits for the queue's row.
    execute format(
        'with held as materialized (
            select c.collection_id, c.chunk_id, c.acl_id, g.embedding
            from unnest($1, $2, $3) as g (chunk_id, hash, embedding)
            inner join pgrag.embed_queue as q on q.space_id = $4 and q.chunk_id = g.chunk_id
            inner join pgrag.chunk as c on c.collection_id = q.collection_id and c.chunk_id = g.chunk_id and c.hash = g.hash
            inner join pgrag.document as d on d.collection_id = c.collection_id and d.document_id = c.document_id
            order by d.collection_id, d.uri, c.ordinal
            for share of d, c
        )
        insert into pgrag.%1$I as e (collection_id, chunk_id, acl_id, embedding)
        select h.collection_id, h.chunk_id, h.acl_id, %2$s
        from held as h
        where h.embedding is not null
        order by h.chunk_id
        on conflict (collection_id, chunk_id) do update set embedding = excluded.embedding', 'embedding_' || in_space,
        case
            when of_space.model_dimension = of_space.dimension then format('h.embedding::%s', kept)
            else format('pgrag._prefix(h.embedding::vector, %s, %L)::%s', of_space.dimension, of_space.normalised, kept)
        end
    ) using chunk_ids, hashes, embeddings, in_space;
    get diagnostics written = row_count;
    delete from pgrag.embed_queue as q
    using unnest(chunk_ids, hashes) as g (chunk_id, hash), pgrag.chunk as c
    where q.space_id = in_space and q.chunk_id = g.chunk_id
        and c.collection_id = q.collection_id and c.chunk_id = g.chunk_id and c.hash = g.hash;
    return written;
end
$$;

comment on function pgrag.store_vectors(text, bigint[], bytea[], text[], text) is
'Writes the vectors that a worker made, where the text is still what it encoded, and takes those chunks off the queue; returns how many were written.
chunk_ids and hashes as pgrag.claim_chunks gave them; embeddings as `[0.1,...]`, in the same order; NULL: the text has none, and leaves the queue all the same. A chunk whose text changed meanwhile is passed over and stays queued. fingerprint: sha256 of the model''s weights, see pgrag.check_space. Of a longer vector than the space keeps, the first numbers are kept, of length 1 again. For members of pgrag_writer and pgrag_owner.
Errors: RG005, RG007 a chunk twice, RG030 lengths differ, RG031 other weights, wrong dimension, not normalised, zero in what is kept, NaN or infinity.';
