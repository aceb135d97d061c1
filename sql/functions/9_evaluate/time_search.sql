-- Measures how long each stage of a search takes on the server.
create or replace function pgrag.time_search(
    query text,
    k int default 20,
    collections text[] default null,
    embedding halfvec default null,
    weights jsonb default null,
    space text default null,
    depth int default null,
    budget_tokens int default null
) returns table (stage text, ms float8)
language plpgsql volatile parallel unsafe security invoker
set search_path from current
as $$
declare
    vector halfvec := embedding;
    settings jsonb[];
    found_ids bigint[];
    covered int[];
    began timestamptz;
    total float8;
    rest float8;
begin
    began := clock_timestamp();
    select array_agg(s.chunk_id) into found_ids
    from pgrag.search(
        query, time_search.k, time_search.collections, time_search.embedding,
        depth => time_search.depth, weights => time_search.weights, space => time_search.space
    ) as s;
    total := extract(epoch from clock_timestamp() - began) * 1000;
    rest := total;
    -- What the search went by, where nothing is said.
    select array_agg(v.collection_id), array_agg(v.search_settings) into covered, settings
    from pgrag._visible_collections(time_search.collections) as v;
    select s.depth, s.weights into depth, weights from pgrag._search_settings(settings, k, depth, null, weights, null) as s;

    if pgrag._weight(weights, 'dense') > 0 and space is not null then
        if vector is null then
            began := clock_timestamp();
            vector := pgrag.embed_query(query, space);
            stage := 'embed';
            ms := extract(epoch from clock_timestamp() - began) * 1000;
            rest := rest - ms;
            return next;
        end if;
        began := clock_timestamp();
        perform from pgrag.search_dense(vector, depth, time_search.collections, space => time_search.space);
        stage := 'dense';
        ms := extract(epoch from clock_timestamp() - began) * 1000;
        rest := rest - ms;
        return next;
    end if;

    if pgrag._weight(weights, 'lexical') > 0 then
        began := clock_timestamp();
        perform from pgrag.search_lexical(query, depth, time_search.collections);
        stage := 'lexical';
        ms := extract(epoch from clock_timestamp() - began) * 1000;
        rest := rest - ms;
        return next;
    end if;

    began := clock_timestamp();
    perform length(h.content), d.title
    from unnest(found_ids) as f (chunk_id)
    cross join lateral (
        select h.collection_id, h.document_id, h.content
        from pgrag.chunk as h
        where h.collection_id = any(covered) and h.chunk_id = f.chunk_id
        limit 1
    ) as h
    inner join pgrag.document as d on d.collection_id = h.collection_id and d.document_id = h.document_id;
    stage := 'text';
    ms := extract(epoch from clock_timestamp() - began) * 1000;
    rest := rest - ms;
    return next;

    stage := 'fuse';
    ms := greatest(rest, 0);
    return next;

    if budget_tokens is not null then
        began := clock_timestamp();
        perform from pgrag.pack_context(
            query, budget_tokens, time_search.k, time_search.collections, time_search.embedding, space => time_search.space
        );
        stage := 'pack';
        ms := greatest(extract(epoch from clock_timestamp() - began) * 1000 - total, 0);
        return next;
    end if;

    stage := 'total';
    ms := total;
    return next;
end
$$;

comment on function pgrag.time_search(text, int, text[], halfvec, jsonb, text, int, int) is
'Measures how long each stage of a search takes on the server: a row a stage, in milliseconds, by running the whole search and then each stage alone.
Stages: `embed` (only where embedding is NULL and space has a query encoder), `dense`, `lexical`, `text` (reading the k passages), `fuse` (what the whole search takes beyond these, at least 0), `pack` (what pgrag.pack_context, which goes by the collections'' own settings, takes beyond the search, at least 0; only with budget_tokens), `total` (the whole search, without `pack`). An arm of weight 0 has no row.
space: NULL leaves embed and dense out. weights, depth: NULL: as pgrag.search has them. The way to the server is in none of them. The same query, run before, warms what it reads. The other arguments, what the caller may see, and errors are those of pgrag.search.';
