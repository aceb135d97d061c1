-- Finds where judged evidence stands now, and the passages that hold it, among what the caller may see.
create or replace function pgrag._evidence_spans(collection text, uris text[], char_starts int[], char_ends int[], quotes text[])
returns table (
    place int, collection_id int, document_id bigint, char_start int, char_end int, held boolean, chunk_ids bigint[], touched jsonb,
    moved boolean, lack text
)
language plpgsql stable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    given record;
    found record;
    core record;
begin
    perform pgrag._check_range('number of uris', coalesce(cardinality(uris), 0), 0, 10000);
    if cardinality(char_starts) <> cardinality(uris) or cardinality(char_ends) <> cardinality(uris) or cardinality(quotes) <> cardinality(uris) then
        raise exception 'got % uris, % char_starts, % char_ends and % quotes',
            cardinality(uris), cardinality(char_starts), cardinality(char_ends), cardinality(quotes)
            using errcode = 'RG030', hint = 'Pass one of each per piece of evidence, in the same order; NULL for what is not known.';
    end if;
    for given in
        select u.nth::int as nth, u.uri, char_starts[u.nth] as char_start, char_ends[u.nth] as char_end, quotes[u.nth] as quote
        from unnest(uris) with ordinality as u (uri, nth)
        order by u.nth
    loop
        if (given.char_start is null) <> (given.char_end is null) or given.char_start < 0 or given.char_end <= given.char_start then
            raise exception 'a span goes from a character, from 0, to a later one, got % to % of "%"',
                coalesce(given.char_start::text, 'NULL'), coalesce(given.char_end::text, 'NULL'), given.uri
                using errcode = 'RG001', hint = 'Pass NULL for both for the whole document.';
        end if;
        place := given.nth;
        char_start := given.char_start;
        char_end := given.char_end;
        chunk_ids := '{}';
        touched := '[]';
        moved := false;
        lack := null;
        select d.collection_id, d.document_id, t.content into found
        from pgrag.collection as c
        inner join pgrag.document as d on d.collection_id = c.collection_id and d.uri = given.uri
        inner join pgrag.document_text as t on t.collection_id = d.collection_id and t.document_id = d.document_id
        where c.name = _evidence_spans.collection;
        collection_id := found.collection_id;
        document_id := found.document_id;
        held := document_id is not null;
        if not held then
            lack := 'no such document';
            return next;
            continue;
        end if;
        if given.quote is not null then
            select q.char_start, q.char_end into core from pgrag._find_quote(found.content, given.quote, given.char_start) as q;
            held := core.char_start is not null;
            moved := held and core.char_start is distinct from given.char_start;
            if held then
                char_start := core.char_start;
                char_end := core.char_end;
            else
                lack := 'the text does not hold the quote';
            end if;
        elsif char_end > length(found.content) then
            held := false;
            lack := 'the text ends before the span does';
        end if;
        if not held then
            return next;
            continue;
        end if;
        select s.char_start, s.char_end into core from pgrag._core_span(found.content, char_start, char_end) as s;
        if char_start is null then
            chunk_ids := array(
                select c.chunk_id from pgrag.chunk as c
                where c.collection_id = found.collection_id and c.document_id = found.document_id
                order by c.ordinal
            );
        else
            select coalesce(array_agg(c.chunk_id order by c.ordinal) filter (where c.char_start <= core.char_start and c.char_end >= core.char_end), '{}'),
                coalesce(jsonb_agg(jsonb_build_object(
                    'chunk_id', c.chunk_id, 'ordinal', c.ordinal, 'char_start', c.char_start, 'char_end', c.char_end
                ) order by c.ordinal), '[]')
            into chunk_ids, touched
            from pgrag.chunk as c
            where c.collection_id = found.collection_id and c.document_id = found.document_id
                and c.char_start < core.char_end and c.char_end > core.char_start;
        end if;
        if chunk_ids = '{}' and touched = '[]' then
            held := false;
            lack := 'no passage holds any of it';
        end if;
        return next;
    end loop;
end
$$;

comment on function pgrag._evidence_spans(text, text[], int[], int[], text[]) is
'Finds where judged evidence stands now, and the passages that hold it, among what the caller may see.
One row per uri, place from 1. char_start and char_end: where it stands now, the nearest to where it stood that holds its quote; NULL: the whole document; moved: whether that is elsewhere. held: whether the document is there, visible, and still holds it; if not, lack says why. chunk_ids: of passages that hold it whole but for white space at its ends, or of the whole document, in their order; touched: passages that hold a part of a span. Errors: RG001 a span that is none, RG030 lengths differ.';
