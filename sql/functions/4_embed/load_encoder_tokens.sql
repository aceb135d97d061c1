-- Loads token vectors of a static encoder.
create or replace function pgrag.load_encoder_tokens(space text, tokens text[], token_ids int[], embeddings halfvec[]) returns int
language plpgsql volatile parallel unsafe security invoker
set search_path from current
as $$
declare
    of_space pgrag.space;
    wrong record;
    written int;
begin
    select s.* into strict of_space from pgrag.space as s where s.space_id = pgrag._space_id(space);
    if cardinality(tokens) is distinct from cardinality(token_ids) or cardinality(tokens) is distinct from cardinality(embeddings) then
        raise exception 'got % tokens, % token_ids and % embeddings',
            coalesce(cardinality(tokens), 0), coalesce(cardinality(token_ids), 0), coalesce(cardinality(embeddings), 0)
            using errcode = 'RG030', hint = 'Pass one of each per token, in the same order.';
    end if;
    if of_space.kind = 'static' and of_space.state <> 'building' then
        raise exception 'space "%" is in use, and other token vectors would not belong to its documents', space
            using errcode = 'RG005', hint = 'Make a space of another name for the other table.';
    end if;
    if of_space.kind <> 'static' and of_space.query_encoder is not null then
        raise exception 'space "%" has a query encoder, "%"', space, of_space.query_encoder
            using errcode = 'RG005', hint = format('In the same transaction, first: select pgrag.set_query_encoder(%L)', space);
    end if;
    select u.token, vector_dims(u.embedding) as dimension into wrong
    from unnest(tokens, embeddings) as u (token, embedding)
    where vector_dims(u.embedding) <> of_space.dimension
    limit 1;
    if found then
        raise exception 'space "%" holds vectors of dimension %, got dimension % for token "%"',
            space, of_space.dimension, wrong.dimension, wrong.token
            using errcode = 'RG031', hint = 'Load a table that was fitted to the model that the passport names.';
    end if;
    insert into pgrag.encoder_token (space_id, token, token_id, embedding)
    select of_space.space_id, u.token, u.token_id, u.embedding
    from unnest(tokens, token_ids, embeddings) as u (token, token_id, embedding);
    get diagnostics written = row_count;
    return written;
end
$$;

comment on function pgrag.load_encoder_tokens(text, text[], int[], halfvec[]) is
'Loads token vectors of a static encoder: tokens, their numbers in the tokenizer, and vectors, in the same order. Returns how many.
Into a space that isn''t in use yet, or one without a query encoder, see pgrag.set_query_encoder. For members of pgrag_owner.
Errors: RG005 no such space, or it has a table; RG030 lengths differ; RG031 vectors of another dimension.';
