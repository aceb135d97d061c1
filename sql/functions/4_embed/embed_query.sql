-- Encodes a query inside the database, so that hybrid search needs no process outside it.
create or replace function pgrag.embed_query(query text, space text default null)
returns halfvec
language plpgsql
stable
parallel safe
security invoker
set search_path from current
as $$
begin
    return pgrag._embed_static(pgrag._query_space(space), query);
end
$$;

comment on function pgrag.embed_query(text, text) is
'The vector of a query, of length 1, by the query encoder of a space, a table of token vectors; for pgrag.search_dense and <=>.
query: any text; case, accents and control characters don''t matter. space: a space''s name; NULL is the only space with a query encoder that the visible collections use.
NULL when the query is NULL, has no token that the encoder knows, or the space has no query encoder: search is lexical then. The space must be visible
to the caller. Errors: see pgrag._query_space.';
