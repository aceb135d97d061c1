-- Loads token vectors of a static encoder.
create or replace function pgrag.load_encoder_tokens(space text, tokens text[], token_ids int[], embeddings halfvec[]) returns int
language plpgsql volatile parallel unsafe security invoker
set search_path from current
as $$
declare
    of_space int := pgrag._query_space(space);
    written int;
begin
    if of_space is null then
        raise exception 'space "NULL" does not exist'
            using errcode = 'RG005', hint = 'Pass the name of a static space.';
    end if;
    if cardinality(tokens) is distinct from cardinality(token_ids) or cardinality(tokens) is distinct from cardinality(embeddings) then
        raise exception 'got % tokens, % token_ids and % embeddings',
            coalesce(cardinality(tokens), 0), coalesce(cardinality(token_ids), 0), coalesce(cardinality(embeddings), 0)
            using errcode = 'RG030', hint = 'Pass one of each per token, in the same order.';
    end if;
    insert into pgrag.encoder_token (space_id, token, token_id, embedding)
    select of_space, u.token, u.token_id, u.embedding
    from unnest(tokens, token_ids, embeddings) as u (token, token_id, embedding);
    get diagnostics written = row_count;
    return written;
end
$$;

comment on function pgrag.load_encoder_tokens(text, text[], int[], halfvec[]) is
'Loads token vectors of a static encoder: tokens, their numbers in the tokenizer, and vectors, in the same order. Returns how many. For members of pgrag_owner. Errors: RG005, RG030 lengths differ.';
