-- Lists the judged queries of a collection with all their judgements.
create or replace function pgrag.export_judged(collection text)
returns table (
    query_id text, query text, principals text[], answer text,
    uri text, char_start int, char_end int, grade int, quote text
)
language plpgsql stable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    of_id int := pgrag._collection_id(collection);
begin
    return query
    select q.query_id, q.query, q.principals, q.answer, j.uri, j.char_start, j.char_end, j.grade, j.quote
    from pgrag.judged_query as q
    left join pgrag.judgement as j on j.collection_id = q.collection_id and j.query_id = q.query_id
    where q.collection_id = of_id
    order by q.query_id collate "C", j.uri collate "C", j.char_start nulls first, j.char_end;
end
$$;

comment on function pgrag.export_judged(text) is
'Lists the judged queries of a collection with all their judgements, by query_id, uri and span.
One row a judgement, and one with a NULL uri for a query without any. principals: who asks; empty: public only. answer: what a good answer says, or NULL. char_start and char_end in characters from 0, the end exclusive; NULL: the whole document. quote: the text of the span when it was judged, or NULL. For members of pgrag_writer and pgrag_owner. Error RG002.';
