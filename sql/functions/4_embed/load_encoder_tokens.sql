-- Loads token vectors of a static encoder.
create or replace function pgrag.load_encoder_tokens(space text, tokens text[], token_ids int[], embeddings halfvec[]) returns int
language plpgsql volatile parallel unsafe security invoker
set search_path from current
as $$
declare
    of_space int := pgrag._query_space(space);
    written int;
begin
    insert into pgrag.encoder_token (space_id, token, token_id, embedding)
    select of_space, u.token, u.token_id, u.embedding
    from unnest(tokens, token_ids, embeddings) as u (token, token_id, embedding);
    get diagnostics written = row_count;
    return written;
end
$$;

comment on function pgrag.load_encoder_tokens(text, text[], int[], halfvec[]) is
'Loads token vectors of a static encoder: tokens, their numbers in the tokenizer, and vectors, in the same order. Returns how many. For members of pgrag_owner. Error RG005.';
