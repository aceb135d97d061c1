-- Finds the chunks that answer a query best: words and meaning, fused, under row-level security.
create or replace function pgrag.search(
    query text,
    k int default 10,
    collections text[] default null,
    embedding halfvec default null,
    filter jsonb default '{}',
    depth int default null,
    rrf_k int default null,
    weights jsonb default null,
    space text default null,
    exact boolean default false,
    fusion text default null
) returns table (
    chunk_id bigint,
    document_id bigint,
    uri text,
    title text,
    heading_path text[],
    content text,
    score float8,
    lexical_rank int,
    lexical_score float8,
    dense_rank int,
    dense_distance float8,
    dense_plan text
)
language plpgsql stable parallel unsafe security invoker
set search_path from current
set plan_cache_mode = force_generic_plan
as $$
begin
    perform pgrag._check_range('k', k, 1, 1000);
    -- The `limit` keeps the planner from reading every chunk and joining the few that were found to them.
    return query
    select f.chunk_id, c.document_id, c.uri, c.title, c.heading_path, c.content, f.score,
        f.lexical_rank, f.lexical_score, f.dense_rank, f.dense_distance, f.dense_plan
    from pgrag._fuse(query, collections, embedding, filter, depth, rrf_k, weights, space, exact, fusion, k) as f
    cross join lateral (
        select h.document_id, d.uri, d.title, h.heading_path, h.content
        from pgrag.chunk as h
        inner join pgrag.document as d on d.collection_id = h.collection_id and d.document_id = h.document_id
        where h.collection_id = any(f.searched) and h.chunk_id = f.chunk_id
        limit 1
    ) as c
    where f.place <= k
    order by f.place;
end
$$;

comment on function pgrag.search(text, int, text[], halfvec, jsonb, int, int, jsonb, text, boolean, text) is
'Finds the chunks that answer a query best: words and meaning, fused, under row-level security, in one snapshot.
query: as in pgrag.search_lexical. k: 1 to 1,000. collections: names; NULL: all the caller may see. embedding: the query''s vector by the space''s model; NULL: made in SQL where the space is static, else the search is lexical. filter: JSON object that a document''s metadata must contain. depth: candidates of each arm, 1 to 10,000, at least k. rrf_k: 1 to 1,000,000. weights: of `lexical` and `dense`, 0 leaves an arm out. space: answer from this one. exact: forbid the approximate index. fusion: `rrf`, by ranks, or `minmax`, by scores. NULL for depth, rrf_k, weights or fusion: what pgrag.set_search_settings set for the visible collections that are searched, where they agree; else 100, 60, both arms alike and `rrf`.
At most k rows, best first, ties by chunk_id. score: sum over arms of weight / (rrf_k + rank), or by `minmax` of weight * (score - lowest) / (highest - lowest) of the arm''s candidates. Ranks from 1, NULL where an arm did not find the chunk. dense_plan: exactly or through an index, why, and the token table that embedded the query, if one did. No caller, no rows; a collection that the caller may not see is as if it did not exist. Errors: RG001, RG005, RG011, RG031.';
