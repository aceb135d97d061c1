-- Forgets judged queries.
create or replace function pgrag.forget_judged(collection text, query_ids text[] default null) returns int
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    of_id int := pgrag._collection_id(collection);
    forgotten int;
begin
    delete from pgrag.judged_query as q
    where q.collection_id = of_id and (query_ids is null or q.query_id = any(query_ids));
    get diagnostics forgotten = row_count;
    return forgotten;
end
$$;

comment on function pgrag.forget_judged(text, text[]) is
'Forgets judged queries with their judgements, and returns how many.
query_ids: which of the collection; NULL: all; a query_id that it doesn''t have is passed over. Runs keep what they found. For members of pgrag_writer and pgrag_owner. Error RG002.';
