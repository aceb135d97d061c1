-- Says of each piece of evidence that a query needs at which stage of a search it is lost, or that it is kept.
create or replace function pgrag.trace_evidence(
    query text,
    uris text[],
    char_starts int[] default null,
    char_ends int[] default null,
    quotes text[] default null,
    k int default 10,
    collection text default null,
    embedding halfvec default null,
    filter jsonb default '{}',
    depth int default null,
    rrf_k int default null,
    weights jsonb default null,
    space text default null,
    fusion text default null,
    budget int default null,
    exact boolean default false
) returns table (
    place int,
    stage text,
    chunk_id bigint,
    lexical_rank int,
    dense_rank_exact int,
    dense_rank int,
    fused_rank int,
    packed boolean,
    detail jsonb
)
language plpgsql stable parallel unsafe security invoker
set search_path from current
as $$
declare
    searched text[] := array[collection];
    wide int;
    arms jsonb;
begin
    perform pgrag._check_range('k', k, 1, 1000);
    if collection is null then
        raise exception 'evidence is of one collection, got NULL'
            using errcode = 'RG001', hint = 'Name it: collection => ''handbook''.';
    end if;
    if budget is not null then
        perform pgrag._check_range('budget', budget, 1, 10000000);
    end if;
    select s.depth, s.weights into wide, arms
    from pgrag._search_settings(
        array(select c.search_settings from pgrag.collection as c where c.name = collection), k, depth, rrf_k, weights, fusion
    ) as s;
    return query
    with evidence as materialized (
        select e.place, e.collection_id, e.document_id, e.char_start, e.char_end, e.held, e.chunk_ids, e.touched, e.moved, e.lack
        from pgrag._evidence_spans(collection, uris, char_starts, char_ends, quotes) as e
    ),

    found as materialized (
        select f.chunk_id, f.place, f.lexical_rank, f.dense_rank, f.dense_plan
        from pgrag._fuse(query, searched, embedding, filter, depth, rrf_k, weights, space, exact, fusion, k) as f
    ),

    -- Asked again, exactly, unless it was exact already.
    nearest as materialized (
        select f.chunk_id, f.dense_rank
        from found as f
        where f.dense_plan like 'exact over%'
        union all
        select f.chunk_id, f.dense_rank
        from (
            select arms || '{"lexical": 0}' as weights
            where not exists (select from found as g where g.dense_plan like 'exact over%')
        ) as w
        cross join lateral pgrag._fuse(query, searched, embedding, filter, depth, rrf_k, w.weights, space, true, fusion, k) as f
    ),

    hit as materialized (
        select f.place, f.chunk_id, c.content, c.document_id, c.char_start, c.char_end, c.cost
        from found as f
        cross join (select array_agg(v.collection_id) as ids from pgrag.collection as v where v.name = trace_evidence.collection) as s
        cross join lateral (
            select h.content, h.document_id, h.char_start, h.char_end,
                pgrag._passage_cost(h.token_count, d.title, h.heading_path, d.uri, h.page) as cost
            from pgrag.chunk as h
            inner join pgrag.document as d on d.collection_id = h.collection_id and d.document_id = h.document_id
            where h.collection_id = any(s.ids) and h.chunk_id = f.chunk_id
            limit 1
        ) as c
        where f.place <= k and budget is not null
    ),

    -- As pgrag.pack_context chooses among the same candidates.
    choice as materialized (
        select l.chunk_ids[c.rank] as chunk_id, c.number, c.left_out
        from (
            select array_agg(h.chunk_id order by h.place) as chunk_ids, array_agg(h.content order by h.place) as contents,
                array_agg(h.cost order by h.place) as costs, array_agg(h.document_id order by h.place) as document_ids,
                array_agg(h.char_start order by h.place) as starts, array_agg(h.char_end order by h.place) as ends
            from hit as h
        ) as l
        cross join lateral pgrag._choose_passages(l.contents, l.costs, l.document_ids, l.starts, l.ends, budget) as c
        where l.chunk_ids is not null
    ),

    -- Each passage that holds a piece of evidence, and how far it comes. What the index passed over makes room for others, so a passage may
    -- be among the candidates though it is not among the exactly nearest: that is not lost.
    candidate as materialized (
        select e.place, i.chunk_id, i.nth, f.lexical_rank, n.dense_rank as dense_rank_exact, f.dense_rank, f.place as fused_rank,
            case when budget is not null then c.number is not null end as packed, c.left_out,
            case
                when f.place is null and n.dense_rank is null then 'representation'
                when f.place is null then 'ann'
                when f.place > k then 'fusion'
                when budget is not null and c.number is null then 'pack'
                else 'kept'
            end as stage
        from evidence as e
        cross join lateral unnest(e.chunk_ids) with ordinality as i (chunk_id, nth)
        left join found as f on f.chunk_id = i.chunk_id
        left join nearest as n on n.chunk_id = i.chunk_id
        left join choice as c on c.chunk_id = i.chunk_id
    ),

    best as materialized (
        select distinct on (c.place) c.*
        from candidate as c
        order by c.place, array_position(array['kept', 'pack', 'fusion', 'ann', 'representation'], c.stage),
            c.fused_rank, c.dense_rank_exact, c.nth
    ),

    parsed as materialized (
        select p.required, p.excluded
        from pgrag._visible_collections(searched) as v
        cross join lateral pgrag._parse_query_by(v.analyzers, query) as p
        where exists (select from best as b where b.stage = 'representation')
    ),

    -- Of what no arm has, what waits for its vector.
    unembedded as materialized (
        select u.chunk_id, (a.of_space).name as space
        from (
            select e.collection_id, array_agg(b.chunk_id) as chunk_ids
            from best as b
            inner join evidence as e on e.place = b.place
            where b.stage = 'representation' and pgrag._weight(arms, 'dense') > 0
            group by e.collection_id
        ) as c
        cross join lateral pgrag._dense_arms(query, trace_evidence.embedding, searched, trace_evidence.space) as a
        cross join lateral unnest(pgrag._without_vector(a.of_space, c.collection_id, c.chunk_ids)) as u (chunk_id)
        where a.embedding is not null
    ),

    -- Why no arm has it.
    missed as (
        select b.place,
            case
                when not d.metadata @> filter then 'the metadata does not contain the filter'
                when not h.tsv @@ p.required then 'it lacks a phrase of the query'
                when h.tsv @@ p.excluded then 'it holds what the query excludes'
                when u.chunk_id is not null then format('it has no vector in space "%s" yet', u.space)
            end as reason
        from best as b
        inner join evidence as e on e.place = b.place
        cross join lateral (
            select t.tsv from pgrag.chunk as t where t.collection_id = e.collection_id and t.chunk_id = b.chunk_id limit 1
        ) as h
        inner join pgrag.document as d on d.collection_id = e.collection_id and d.document_id = e.document_id
        left join parsed as p on true
        left join unembedded as u on u.chunk_id = b.chunk_id
        where b.stage = 'representation'
    ),

    staged as (
        select e.place, b.chunk_id, b.lexical_rank, b.dense_rank_exact, b.dense_rank, b.fused_rank, b.packed, b.left_out,
            e.collection_id, e.char_start, e.char_end, e.moved, e.lack, e.touched,
            case when not e.held then 'not_ingested' when b.stage is null then 'split' else b.stage end as stage
        from evidence as e
        left join best as b on b.place = e.place
    )

    select s.place, s.stage, s.chunk_id, s.lexical_rank, s.dense_rank_exact, s.dense_rank, s.fused_rank, s.packed,
        jsonb_strip_nulls(jsonb_build_object(
            'reason', case s.stage when 'not_ingested' then s.lack when 'representation' then m.reason when 'pack' then s.left_out end,
            'ordinal', p.ordinal,
            'heading', p.heading,
            'moved_to', case when s.moved then jsonb_build_array(s.char_start, s.char_end) end,
            'chunks', case when s.stage = 'split' then s.touched end,
            'depth', case when s.stage in ('representation', 'ann', 'fusion') then wide end,
            'arms', case when s.stage = 'representation' then (
                select jsonb_agg(a.arm order by a.arm desc)
                from (values
                    ('lexical', pgrag._weight(arms, 'lexical') > 0),
                    ('dense', exists (select from nearest as n))
                ) as a (arm, asked)
                where a.asked
            ) end,
            'plan', case when s.stage = 'ann' then (select min(f.dense_plan) from found as f) end,
            'k', case when s.stage = 'fusion' then k end,
            'budget', case when s.stage = 'pack' then budget end
        ))
    from staged as s
    left join missed as m on m.place = s.place
    left join lateral (
        select h.ordinal, nullif(array_to_string(h.heading_path, ' > '), '') as heading
        from pgrag.chunk as h
        where h.collection_id = s.collection_id and h.chunk_id = s.chunk_id
        limit 1
    ) as p on true
    order by s.place;
end
$$;

comment on function pgrag.trace_evidence(text, text[], int[], int[], text[], int, text, halfvec, jsonb, int, int, jsonb, text, text, int, boolean) is
'Says of each piece of evidence that a query needs at which stage of a search it is lost, or that it is kept: exactly one, in one snapshot.
uris, char_starts, char_ends and quotes in the same order: spans of documents of this collection, in characters from 0, the end exclusive; both NULL: the whole document, of which the best passage counts. quotes: what a span held when it was judged; where it stands elsewhere now, that counts, white space aside; with char_start NULL it is looked for; an array that is NULL holds nothing but NULLs. At most 10,000. budget: of pgrag.pack_context; NULL: packing is not asked. The other arguments as in pgrag.search, of one collection.
stage, the first that applies: not_ingested (no such document that the caller may see, or its text no longer holds the quote or the span), split (no passage holds the span whole), representation (in no arm''s candidates, and not among the exactly nearest depth), ann (among these, but passed over by the approximate index, and not found by words), fusion (its place is beyond k), pack (not chosen within the budget), kept.
One row each, place from 1. chunk_id: the passage that counts. Ranks from 1, NULL where an arm doesn''t have it: lexical_rank and dense_rank are those of the search, dense_rank_exact that of an exact one; fused_rank is the place after fusion, before k. packed: NULL where packing is not asked. detail: ordinal, from 0, and heading of that passage; reason; moved_to, where the span is now; chunks, the passages that hold a part of a split span; depth, arms, plan, k or budget, where they decided.
Depends only on what the caller may see: a document that is hidden is one that isn''t there; pgrag.evidence_presence tells writers and owners. Errors: RG030 lengths differ, RG001, RG005, RG011, RG031.';
