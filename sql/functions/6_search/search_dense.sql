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
declare
    in_space pgrag.space;
    spaces text[];
    ids int[];
    visible bigint;
begin
    perform pgrag._check_range('k', k, 1, 10000);
    perform pgrag._check_filter(filter);
    if embedding is null then
        return;
    end if;
    -- Asked once: what a caller may see costs more than the rest.
    with seen as materialized (
        select c.collection_id, c.active_space_id, c.chunks from pgrag._visible_collections(collections) as c
    )

    select a.names, c.ids, c.chunks into spaces, ids, visible
    from (
        select case when search_dense.space is not null then array[search_dense.space] else array_agg(distinct s.name order by s.name) end as names
        from seen as v
        inner join pgrag.space as s on s.space_id = v.active_space_id
    ) as a
    left join lateral (
        select array_agg(v.collection_id order by v.collection_id) as ids, sum(v.chunks) as chunks
        from seen as v
        inner join pgrag.collection_space as cs on cs.collection_id = v.collection_id
        inner join pgrag.space as s on s.space_id = cs.space_id
        where s.name = a.names[1]
    ) as c on true;
    if cardinality(spaces) > 1 then
        raise exception 'the collections use % spaces: %', cardinality(spaces), array_to_string(spaces, ', ')
            using errcode = 'RG005', hint = 'A vector belongs to one: name it with space => ...';
    end if;
    if ids is null then
        return;
    end if;
    select * into in_space from pgrag.space as s where s.name = spaces[1];
    embedding := pgrag._query_vector(in_space, embedding);
    return query
    select n.chunk_id, n.document_id, (row_number() over (order by n.distance, n.chunk_id))::int, n.distance, n.plan
    from pgrag._nearest(in_space, ids, embedding, k, filter, visible, exact) as n
    order by n.distance, n.chunk_id;
end
$$;

comment on function pgrag.search_dense(halfvec, int, text[], jsonb, text, boolean) is
'Finds the chunks whose vectors are nearest to a query''s, among what the caller may see.
embedding: the query''s vector; NULL gives no rows. k: 1 to 10,000. collections: names; NULL: all. filter: JSON object that a document''s metadata must contain. space: where the vector belongs; NULL: the only active space of the collections. exact: forbid the approximate index.
At most k rows, nearest first, ties by chunk_id; rank from 1; distance is the cosine distance, 0 to 2; plan says how it was decided to search, exactly or through an index, and why. A longer vector than the space keeps is cut as they were. No caller, no rows. Errors: RG001, RG005 several spaces, RG031 a vector of another space.';
