-- Finds the span of a document's text that each judgement means.
create or replace function pgrag._judged_spans(
    collection_id int, uris text[], char_starts int[], char_ends int[], ordinals int[], quotes text[]
) returns table (place bigint, char_start int, char_end int, quote text, changed boolean, problem text)
language sql stable parallel safe security invoker
begin atomic
with wanted as (
    select u.place, u.char_start, u.char_end, u.ordinal, u.quote, d.document_id,
        t.content, length(t.content) as characters, c.chunk_id, c.char_start as passage_start, c.char_end as passage_end,
        u.char_start is not null and u.char_end is not null as spanned,
        u.char_start >= 0 and u.char_end > u.char_start as ordered
    from unnest(uris, char_starts, char_ends, ordinals, quotes) with ordinality as u (uri, char_start, char_end, ordinal, quote, place)
    left join pgrag.document as d on d.collection_id = _judged_spans.collection_id and d.uri = u.uri
    -- The texts of documents that are judged as a whole aren't read.
    left join pgrag.document_text as t
        on t.collection_id = d.collection_id and t.document_id = d.document_id
            and (u.char_start is not null or u.quote is not null or u.ordinal is not null)
    left join pgrag.chunk as c
        on c.collection_id = d.collection_id and c.document_id = d.document_id and c.ordinal = u.ordinal
),

reading as (
    select w.*,
        case when w.spanned and w.ordered and w.char_end <= w.characters
            then substr(w.content, w.char_start + 1, w.char_end - w.char_start)
        end as text
    from wanted as w
),

exact as (
    select r.*, case when r.quote = '' or r.text = r.quote then null else strpos(r.content, r.quote) end as found_at
    from reading as r
),

found as (
    select e.*, case when e.found_at > 0 then e.found_at - 1 else l.char_start end as quote_start,
        case when e.found_at > 0 then e.found_at - 1 + length(e.quote) else l.char_end end as quote_end,
        case
            when e.found_at > 0 then strpos(substr(e.content, e.found_at + 1), e.quote) > 0
            when e.found_at = 0 then (pgrag._find_quote(substr(e.content, l.char_start + 2), e.quote, null)).char_start is not null
        end as again
    from exact as e
    -- What is quoted from a page that was laid out has other line breaks.
    left join lateral (select q.char_start, q.char_end from pgrag._find_quote(e.content, e.quote, null) as q where e.found_at = 0) as l on true
),

placed as (
    select f.*, f.quote_start is not null and not f.again as once from found as f
)

select p.place,
    case when p.once then p.quote_start when p.spanned then p.char_start when p.ordinal is not null then p.passage_start end as char_start,
    case when p.once then p.quote_end when p.spanned then p.char_end when p.ordinal is not null then p.passage_end end as char_end,
    case
        when p.once then substr(p.content, p.quote_start + 1, p.quote_end - p.quote_start)
        else coalesce(p.quote, p.text, substr(p.content, p.passage_start + 1, p.passage_end - p.passage_start))
    end as quote,
    coalesce(p.spanned and p.found_at is not null and not p.once, false) as changed,
    case
        when (p.char_start is null) <> (p.char_end is null) then 'a span has a start and an end'
        when p.spanned and not p.ordered then format('%s to %s is no span', p.char_start, p.char_end)
        when p.ordinal is not null and (p.spanned or p.quote is not null) then 'an ordinal comes without a span and a quote'
        when btrim(p.quote, E' \t\r\n') = '' then 'the quote is empty'
        when p.document_id is null then null
        when p.ordinal is not null and p.chunk_id is null then format('it has no passage %s', p.ordinal)
        when not p.spanned and p.again then format('its text holds the quote "%s" more than once', left(p.quote, 60))
        when not p.spanned and p.quote is not null and not p.once then format('its text does not hold the quote "%s"', left(p.quote, 60))
        when p.spanned and p.quote is null and p.char_end > p.characters
            then format('the span ends at %s, its text has %s characters', p.char_end, p.characters)
    end as problem
from placed as p;
end;

comment on function pgrag._judged_spans(int, text[], int[], int[], int[], text[]) is
'Finds the span of a document''s text that each judgement means: the one that is given, that of the passage with this ordinal, or where its quote stands, once, white space aside if need be.
One row a judgement, by its place from 1. quote: what the span reads, or the given one where that can''t be told. A span with a quote that it doesn''t read is moved to where the quote stands, once; where it can''t be, it stays and changed is true. problem: what is wrong, or NULL. Without a span where the whole document is meant or it is unknown.';
