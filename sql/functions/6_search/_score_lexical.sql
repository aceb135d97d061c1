-- Scores one collection's visible chunks by BM25 and returns the best.
-- score(d) = sum over query terms of idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / average))
-- idf = ln(1 + (N - df + 0.5) / (df + 0.5)). Robertson and Zaragoza 2009; this idf as in Lucene.
create or replace function pgrag._score_lexical(
    collection_id int, analyzers text[], k1 float8, b float8, chunks bigint, lexemes bigint, query text, k int, filter jsonb
) returns table (chunk_id bigint, document_id bigint, score float8)
language plpgsql stable parallel safe security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
    parsed record;
    words text[];
    counts int[];
    ids bigint[];
    weights record;
    acl_ids int[] := pgrag._few_acl_ids();
begin
    select * into parsed from pgrag._parse_query_by(analyzers, query);
    words := parsed.terms;
    counts := parsed.counts;
    if cardinality(parsed.prefixes) > 0 then
        select words || array_agg(l.lexeme), counts || array_agg(1) into words, counts
        from (
            select distinct m.lexeme
            from unnest(parsed.prefixes) as p (prefix)
            inner join pgrag.lexeme as m
                on m.collection_id = _score_lexical.collection_id
                and m.lexeme >= p.prefix and m.lexeme < p.prefix || chr(1114111)
            where m.lexeme <> all(parsed.terms)
        ) as l
        having count(*) > 0;
        words := coalesce(words, parsed.terms);
        counts := coalesce(counts, parsed.counts);
    end if;
    if coalesce(cardinality(words), 0) = 0 then
        return;
    end if;

    ids := array(
        select hashtextextended(u.lexeme collate "C", 0) from unnest(words) with ordinality as u (lexeme, place) order by u.place
    );
    -- Static, so that it is planned once a session; every statement in here sees the same snapshot.
    with met as (
        select r.term, sum(r.sign * r.n) as df, sum(r.n) as postings, count(*) filter (where r.sign < 0) as negative,
            max(pgrag._bm25_bound(r.max_tf, r.min_ratio, lexemes::float8 / chunks, k1, b))
                filter (where r.sign > 0) as highest
        from pgrag._runs(collection_id, ids, acl_ids) as r
        group by r.term
    ),

    weight as (
        select m.term, m.postings, m.negative, m.highest, w.n * pgrag._bm25_most(chunks, m.df, k1) as most
        from met as m
        inner join unnest(ids, counts) as w (term, n) on w.term = m.term
        where m.df > 0
    ),

    -- A score is at most 2 ^ 44 points, so that hundreds of postings that cancel add up exactly too.
    unit as materialized (
        select power(2::float8, 44 - ceil(log(2, sum(w.most order by w.term)::numeric))::float8) as one from weight as w
    )

    select array_agg(w.term order by w.postings, w.term) as terms,
        array_agg(w.most * u.one order by w.postings, w.term) as mosts,
        array_agg(ceil(w.most * u.one * w.highest) + 2 order by w.postings, w.term) as bounds,
        array_agg(w.postings order by w.postings, w.term) as postings,
        array_agg(w.negative > 0 order by w.postings, w.term) as netted,
        max(w.negative) as negative, min(u.one) as one
    into weights
    from weight as w
    cross join unit as u;
    if weights.terms is null then
        return;
    end if;

    -- Chunks that must pass a check are not known to be among the best before all are scored.
    if parsed.required is not null or parsed.excluded is not null or filter <> '{}' or (
        weights.negative > 256 and exists (
            select from pgrag._runs(collection_id, ids, acl_ids) as r
            where r.sign < 0
            group by r.term, r.acl_id
            having count(*) > 256
        )
    ) then
        return query
        select s.chunk_id, s.document_id, s.points / weights.one
        from pgrag._score_every_posting(
            collection_id, weights.terms, weights.mosts, lexemes::float8 / chunks, k1, b, k, acl_ids,
            parsed.required, parsed.excluded, filter
        ) as s;
    else
        return query
        select s.chunk_id, s.document_id, s.points / weights.one
        from pgrag._score_pruned(
            collection_id, weights.terms, weights.mosts, weights.bounds, weights.postings, weights.netted,
            lexemes::float8 / chunks, k1, b, k, acl_ids
        ) as s;
    end if;
end
$$;

comment on function pgrag._score_lexical(int, text[], float8, float8, bigint, bigint, text, int, jsonb) is
'Scores one collection''s visible chunks by BM25 and returns the best k, unordered.
chunks and lexemes: as pgrag._visible_collections has them, over all that the caller may see, whatever the filter. score: above 0, unbounded, the same bit for bit for the same visible rows.';
