-- Says of judged evidence whether it is there at all, whoever may see it.
create or replace function pgrag.evidence_presence(
    collection text, uris text[], char_starts int[] default null, char_ends int[] default null, quotes text[] default null
) returns table (place int, has_document boolean, has_quote boolean, chunk_ids bigint[])
language plpgsql stable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgrag._collection_id(collection);
    return query
    select e.place, e.document_id is not null, e.held, e.chunk_ids
    from pgrag._evidence_spans(collection, uris, char_starts, char_ends, quotes) as e
    order by e.place;
end
$$;

comment on function pgrag.evidence_presence(text, text[], int[], int[], text[]) is
'Says of judged evidence whether it is there at all, whoever may see it: what pgrag.trace_evidence finds not_ingested for its caller, and this finds, is not permitted to that caller.
uris, char_starts, char_ends and quotes in the same order, as in pgrag.trace_evidence. One row each, place from 1. has_document: whether the collection holds the document; has_quote: whether its text still holds the quote, or reaches to the end of the span, and some passage holds part of it; chunk_ids: of the passages that hold it whole, or of the whole document, in their order.
For members of pgrag_writer and pgrag_owner, who see all content. Errors: RG001 a span that is none, RG002, RG030 lengths differ.';
