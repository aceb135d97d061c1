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
    if space is null then
        select array_agg(distinct s.name order by s.name) into spaces
        from pgrag._visible_collections(collections) as c
        inner join pgrag.space as s on s.space_id = c.active_space_id;
        if cardinality(spaces) > 1 then
            raise exception 'the collections use % spaces: %', cardinality(spaces), array_to_string(spaces, ', ')
                using errcode = 'RG005', hint = 'A vector belongs to one: name it with space => ...';
        end if;
        space := spaces[1];
    end if;
    select * into in_space from pgrag.space as s where s.name = space;
    if in_space is null then
        return;
    end if;
    select array_agg(c.collection_id), sum(c.chunks) into ids, visible
    from pgrag._visible_collections(collections) as c
    where exists (
        select from pgrag.collection_space as cs where cs.collection_id = c.collection_id and cs.space_id = in_space.space_id
    );
    if ids is null then
        return;
    end if;
    if vector_dims(embedding) <> in_space.dimension then
        raise exception 'space "%" holds vectors of % of dimension %, got dimension %',
            space, in_space.model, in_space.dimension, vector_dims(embedding)
            using errcode = 'RG031', hint = 'Embed the query with the model that the passport names.';
    end if;
    if l2_norm(embedding) = 0 then
        raise exception 'the query vector is zero, and has no direction'
            using errcode = 'RG031', hint = 'Leave out the embedding to search by words alone.';
    end if;
    return query
    select n.chunk_id, n.document_id, (row_number() over (order by n.distance, n.chunk_id))::int, n.distance, n.plan
    from pgrag._nearest(in_space.space_id, ids, embedding, k, filter, visible, exact or in_space.index_kind = 'none') as n
    order by n.distance, n.chunk_id;
end
$$;

comment on function pgrag.search_dense(halfvec, int, text[], jsonb, text, boolean) is
'Finds the chunks whose vectors are nearest to a query''s, among what the caller may see.
embedding: the query''s vector; NULL gives no rows. k: 1 to 10,000. collections: names; NULL: all. filter: JSON object that a document''s metadata must contain. space: where the vector belongs; NULL: the only active space of the collections. exact: forbid the approximate index.
At most k rows, nearest first, ties by chunk_id; rank from 1; distance is the cosine distance, 0 to 2; plan says how the rows were found: exactly, or through an index, and why. No caller, no rows. Errors: RG001, RG005 several spaces, RG031 a vector of another space.';
