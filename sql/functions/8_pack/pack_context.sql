-- Chooses the passages that a generator is given for a question, within a budget of tokens, and fences them as data.
create or replace function pgrag.pack_context(
    query text,
    budget_tokens int default 2000,
    k int default 20,
    collections text[] default null,
    embedding halfvec default null,
    filter jsonb default '{}',
    space text default null,
    exact boolean default false
) returns table (
    place int,
    passage_id text,
    chunk_id bigint,
    document_id bigint,
    uri text,
    title text,
    heading_path text[],
    page int,
    char_start int,
    char_end int,
    content text,
    token_count int,
    score float8,
    removed_characters int,
    flagged boolean,
    text text,
    left_out text
)
language plpgsql stable parallel unsafe security invoker
set search_path from current
as $$
begin
    perform pgrag._check_range('budget_tokens', budget_tokens, 1, 10000000);
    return query
    with covered as materialized (
        select v.collection_id from pgrag._visible_collections(collections) as v
    ),

    hit as materialized (
        select row_number() over (order by s.score desc, s.chunk_id)::int as rank, s.*
        from pgrag.search(query, k, collections, embedding, filter, space => space, exact => exact) as s
    ),

    found as materialized (
        select h.rank, h.chunk_id, h.document_id, h.uri, h.title, h.heading_path, h.content, h.score,
            c.page, c.char_start, c.char_end, c.hash,
            pgrag._passage_cost(c.token_count, h.title, h.heading_path, h.uri, c.page) as cost,
            concat_ws(E'\n', h.title, array_to_string(h.heading_path, E'\n'), h.uri, h.content) as shown
        from hit as h
        cross join lateral (
            select t.page, t.char_start, t.char_end, t.hash, t.token_count
            from covered as v
            inner join pgrag.chunk as t on t.collection_id = v.collection_id and t.chunk_id = h.chunk_id
            limit 1
        ) as c
    ),

    listed as (
        select array_agg(f.content order by f.rank) as contents, array_agg(f.cost order by f.rank) as costs,
            array_agg(f.document_id order by f.rank) as document_ids,
            array_agg(f.char_start order by f.rank) as starts, array_agg(f.char_end order by f.rank) as ends
        from found as f
    ),

    chosen as materialized (
        select c.rank, 'P' || c.number as passage_id, c.left_out,
            -- Best first, second best last, the rest in between: readers attend to both ends.
            case when c.number = 2 then max(c.number) over () when c.number > 2 then c.number - 1 else c.number end as place
        from listed as l
        cross join lateral pgrag._choose_passages(
            l.contents, l.costs, l.document_ids, l.starts, l.ends, budget_tokens
        ) as c
    ),

    packed as (
        -- Made from the passages, so that no passage can hold it; the same for the same passages, so that prompts can be cached.
        select left(encode(sha256(convert_to(query, 'UTF8') || coalesce(string_agg(f.hash, ''::bytea order by c.place), ''::bytea)), 'hex'), 8)
            as nonce
        from found as f
        inner join chosen as c on c.rank = f.rank
        where c.place is not null
    )

    select c.place, c.passage_id, f.chunk_id, f.document_id, f.uri, f.title, f.heading_path, f.page, f.char_start, f.char_end,
        f.content, f.cost, f.score,
        length(f.shown) - length(v.shown), pgrag._reads_like_orders(v.shown),
        pgrag._fence(p.nonce, c.passage_id, f.title, f.heading_path, f.uri, f.page)
        || E'\n' || pgrag._without_fences(pgrag._visible_text(f.content))
        || E'\n</passage-' || case when c.place is not null then p.nonce end || '>',
        c.left_out
    from found as f
    inner join chosen as c on c.rank = f.rank
    cross join packed as p
    cross join lateral (select pgrag._visible_text(f.shown) as shown) as v
    order by c.place, c.rank;
end
$$;

comment on function pgrag.pack_context(text, int, int, text[], halfvec, jsonb, text, boolean) is
'Chooses the passages that a generator is given for a question, within a budget of tokens, and fences them as data.
budget_tokens: 1 to 10,000,000. k: candidates, 1 to 1,000. The other arguments are those of pgrag.search, which finds the candidates in the same snapshot.
One row a candidate. First those that are packed, by place from 1: the best hit, then the rest by score, and the second best last. passage_id goes by score: P1 is the best. Then those left out, by score, with place, passage_id and text NULL and the reason in left_out: over the budget; same text as P1; nearly the same text as P1; overlaps P1.
token_count: what a passage takes of the budget: tokens of its content as its writer counted them (an estimate where SQL chunked), plus pgrag._estimate_tokens of its fence. The sum over what is packed is at most budget_tokens. Candidates are taken best first; one too large leaves room for smaller ones after it, so a small budget may pack none.
content: as stored. text: <passage-NONCE id="P1" title="…" section="A › B" uri="…" page="3">, the content, </passage-NONCE>, each on its own line. NONCE is 8 hex digits of a sha256 over the query and the packed chunks: the same for the same, and not known to whoever wrote them. Whatever else looks like such a fence is made harmless, and invisible characters are taken out of content, title, headings and uri; removed_characters counts these.
flagged: reads like orders to the reader (pgrag._reads_like_orders); it is packed all the same, for the application to decide.
Everything in a row depends on the query and on what the caller may see. No caller, no rows. Errors: RG001, RG005, RG011, RG031.';
