-- Scores one collection's visible chunks by BM25 and returns the best.
-- score(d) = sum over query terms of idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / average))
-- idf = ln(1 + (N - df + 0.5) / (df + 0.5)). Robertson and Zaragoza 2009; this idf as in Lucene.
create or replace function pgrag._score_lexical(
    collection_id int, analyzer text, k1 float8, b float8, chunks bigint, lexemes bigint, query text, k int, filter jsonb
) returns table (chunk_id bigint, document_id bigint, score float8)
language plpgsql stable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    parsed record;
    words text[];
    counts int[];
    checks text;
    acl_ids int[] := pgrag._few_acl_ids();
    allowed bigint[] := pgrag._narrow_filter(collection_id, filter);
begin
    select * into parsed from pgrag._parse_query(analyzer, query);
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

    -- What a candidate must pass, best first, until k have; without any, the first k are the answer.
    checks := concat(
        case when parsed.required is not null then ' and c.tsv @@ $11' end,
        case when parsed.excluded is not null then ' and not c.tsv @@ $12' end,
        case when filter <> '{}' and allowed is null then
            ' and exists (
                select from pgrag.document as d
                where d.collection_id = c.collection_id and d.document_id = c.document_id and d.metadata @> $13
            )'
        end
    );

    -- Dynamic, so that it is planned with the arrays known: estimated well, and hashed where they filter.
    return query execute format($sql$
        with wanted as materialized (
            select hashtextextended(u.lexeme collate "C", 0) as term, u.n from unnest($2, $3) as u (lexeme, n)
        ),

        run as materialized (
            select p.term, p.sign, p.n, p.chunk_ids, p.tfs, p.lengths
            from pgrag.posting as p
            where p.collection_id = $1 and p.term = any(array(select w.term from wanted as w)) %1$s
        ),

        frequency as (
            select r.term, sum(r.sign * r.n) as df, bool_or(r.sign < 0) as netted from run as r group by r.term
        ),

        weight as materialized (
            select f.term, f.netted, w.n * pgrag._bm25_most($4, f.df, $6) as most
            from frequency as f
            inner join wanted as w on w.term = f.term
            where f.df > 0
        ),

        -- Whole numbers in a float add up exactly, in any order, below 2 ^ 53: so no bit of a score depends on
        -- the order or the history of the postings.
        unit as materialized (
            select power(2::float8, 51 - ceil(log(2, sum(w.most order by w.term)::numeric))::float8) as one from weight as w
        ),

        hit as (
            select w.most * u.one as most, unnest(r.chunk_ids) as chunk_id, unnest(r.tfs) as tf, unnest(r.lengths) as length
            from run as r
            inner join weight as w on w.term = r.term and not w.netted
            cross join unit as u
            union all
            select n.most, n.chunk_id, sum(n.sign * n.tf)::smallint, sum(n.sign * n.length)::smallint
            from (
                select w.most * u.one as most, r.term, r.sign,
                    unnest(r.chunk_ids) as chunk_id, unnest(r.tfs) as tf, unnest(r.lengths) as length
                from run as r
                inner join weight as w on w.term = r.term and w.netted
                cross join unit as u
            ) as n
            group by n.most, n.term, n.chunk_id
            having sum(n.sign) > 0
        ),

        scored as (
            select h.chunk_id, sum(round(h.most * pgrag._bm25_share(h.tf, h.length, $5, $6, $7))) as points
            from hit as h
            group by h.chunk_id
        ),

        candidate as (
            select s.chunk_id, s.points from scored as s %2$s order by s.points desc, s.chunk_id %4$s
        )

        select t.chunk_id, t.document_id, t.points / u.one
        from (
            select s.chunk_id, c.document_id, s.points
            from candidate as s
            cross join lateral (
                select c.document_id
                from pgrag.chunk as c
                where c.collection_id = $1 and c.chunk_id = s.chunk_id %3$s
                limit 1
            ) as c
            order by s.points desc, s.chunk_id
            limit $8
        ) as t
        cross join unit as u
        $sql$,
        case when acl_ids is not null then 'and p.acl_id = any($9)' end,
        case when allowed is not null then 'where s.chunk_id = any($10)' end,
        checks, case when checks = '' then 'limit $8' end
    ) using collection_id, words, counts, chunks, lexemes::float8 / chunks, k1, b, k, acl_ids, allowed,
        parsed.required, parsed.excluded, filter;
end
$$;

comment on function pgrag._score_lexical(int, text, float8, float8, bigint, bigint, text, int, jsonb) is
'Scores one collection''s visible chunks by BM25 and returns the best k, unordered.
chunks and lexemes: as pgrag._visible_collections has them, over all that the caller may see, whatever the filter. score: above 0, unbounded, the same bit for bit for the same visible rows.';
