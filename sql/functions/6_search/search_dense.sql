-- Finds the chunks whose vectors are nearest to a query's, among what the caller may see.
create or replace function pgrag.search_dense(
    embedding halfvec,
    k int default 10,
    collections text[] default null,
    filter jsonb default '{}',
    space text default null,
    exact boolean default false
) returns table (chunk_id bigint, document_id bigint, rank int, distance float8, plan text)
language plpgsql stable parallel unsafe security invoker
set search_path from current
as $$
begin
    perform pgrag._check_range('k', k, 1, 10000);
    perform pgrag._check_filter(filter);
    if embedding is null then
        return;
    end if;
    return query
    select n.chunk_id, n.document_id, (row_number() over (order by n.distance, n.chunk_id))::int, n.distance, n.plan
    from pgrag._dense_arms(null, embedding, collections, space) as a
    cross join lateral pgrag._nearest(a.of_space, a.collection_ids, a.embedding, k, filter, a.visible, exact) as n
    order by n.distance, n.chunk_id;
end
$$;

comment on function pgrag.search_dense(halfvec, int, text[], jsonb, text, boolean) is
'Finds the chunks whose vectors are nearest to a query''s, among what the caller may see.
embedding: the query''s vector; NULL gives no rows. k: 1 to 10,000. collections: names; NULL: all. filter: JSON object that a document''s metadata must contain. space: where the vector belongs; NULL: the only active space of the collections. exact: forbid the approximate index.
At most k rows, nearest first, ties by chunk_id; rank from 1; distance is the cosine distance, 0 to 2; plan says how it was decided to search, exactly or through an index, and why. A longer vector than the space keeps is cut as they were. No caller, no rows. Errors: RG001, RG005 several spaces, RG031 a vector of another space.';
