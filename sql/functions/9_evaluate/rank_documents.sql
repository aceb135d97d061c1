-- Ranks documents by their best passage, as an evaluation counts them.
create or replace function pgrag.rank_documents(
    query text,
    k int default 100,
    collections text[] default null,
    embedding halfvec default null,
    weights jsonb default null,
    space text default null,
    passages int default 100,
    exact boolean default false
) returns table (rank int, uri text, ordinal int, score float8)
language plpgsql stable parallel unsafe security invoker
set search_path from current
as $$
declare
    -- What a search gives at most.
    deepest constant int := 1000;
    chunk_ids bigint[];
    uris text[];
    scores float8[];
begin
    perform pgrag._check_range('k', k, 1, deepest);
    perform pgrag._check_range('passages', passages, 1, deepest);
    select array_agg(s.chunk_id order by s.score desc, s.chunk_id), array_agg(s.uri order by s.score desc, s.chunk_id),
        array_agg(s.score order by s.score desc, s.chunk_id)
    into chunk_ids, uris, scores
    from pgrag.search(
        query, passages, rank_documents.collections, rank_documents.embedding,
        weights => rank_documents.weights, space => rank_documents.space, exact => rank_documents.exact
    ) as s;
    if cardinality(uris) = passages and passages < deepest and (select count(distinct u.uri) from unnest(uris) as u (uri)) < k then
        select chunk_ids || array_agg(s.chunk_id order by s.score desc, s.chunk_id), uris || array_agg(s.uri order by s.score desc, s.chunk_id),
            scores || array_agg(s.score order by s.score desc, s.chunk_id)
        into chunk_ids, uris, scores
        from pgrag.search(
            query, deepest, rank_documents.collections, rank_documents.embedding,
            weights => rank_documents.weights, space => rank_documents.space, exact => rank_documents.exact
        ) as s;
    end if;
    return query
    with covered as materialized (
        select array_agg(v.collection_id) as ids from pgrag._visible_collections(rank_documents.collections) as v
    ),

    best as (
        select distinct on (u.uri) u.uri, u.chunk_id, u.score, u.place
        from unnest(uris, chunk_ids, scores) with ordinality as u (uri, chunk_id, score, place)
        order by u.uri, u.place
    )

    select (row_number() over (order by b.place))::int, b.uri, c.ordinal, b.score
    from best as b
    cross join covered as v
    cross join lateral (
        select h.ordinal from pgrag.chunk as h
        where h.collection_id = any(v.ids) and h.chunk_id = b.chunk_id
        limit 1
    ) as c
    order by b.place
    limit k;
end
$$;

comment on function pgrag.rank_documents(text, int, text[], halfvec, jsonb, text, int, boolean) is
'Ranks documents by their best passage, as an evaluation counts them.
k: most documents, 1 to 1,000. passages: how many a search is asked for, 1 to 1,000. Where these are of fewer than k documents, those that a search for 1,000 passages finds follow, so that the first ones stay as searches for so many give them. The other arguments are those of pgrag.search.
At most k rows, best first; rank from 1; ordinal: the best passage''s place in its document, from 0; score: that passage''s, in the search that found it. Documents of one uri in two collections count as one. No caller, no rows. Errors as of pgrag.search.';
