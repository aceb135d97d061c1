-- Finds the chunks that match the words of a query best, by exact BM25 over what the caller may see.
create or replace function pgrag.search_lexical(
    query text, k int default 10, collections text[] default null, filter jsonb default '{}'
) returns table (chunk_id bigint, document_id bigint, rank int, score float8)
language plpgsql stable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgrag._check_range('k', k, 1, 10000);
    perform pgrag._check_filter(filter);
    return query
    select s.chunk_id, s.document_id, (row_number() over (order by s.score desc, s.chunk_id))::int, s.score
    from pgrag._visible_collections(collections) as c
    cross join lateral pgrag._score_lexical(
        c.collection_id, c.analyzers, c.k1, c.b, c.chunks, c.lexemes, query, k, filter
    ) as s
    order by s.score desc, s.chunk_id
    limit k;
end
$$;

comment on function pgrag.search_lexical(text, int, text[], jsonb) is
'Finds the chunks that match the words of a query best, by exact BM25 over what the caller may see.
query: words are OR-ed and ranked; "phrases" must occur, one of them where OR stands between, and none beside more than 10 words; -words must not, prefix* matches the beginnings of words. k: 1 to 10,000. collections: names; NULL: all. filter: JSON object that a document''s metadata must contain.
At most k rows, best first, ties by chunk_id; rank from 1; score above 0. N, document frequencies and the average length count the visible chunks of a collection, whatever the filter. No caller, no rows. Errors: RG001, RG011.';
