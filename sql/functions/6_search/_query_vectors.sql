-- Finds what each dense arm of a search compares: a vector, the space it belongs to, and the collections there.
create or replace function pgrag._query_vectors(
    query text, given halfvec, asked text[], in_space text
) returns table (space text, collections text[], embedding halfvec)
language plpgsql stable parallel restricted security invoker
set search_path from current
as $$
begin
    if given is not null then
        return query select in_space, asked, given;
        return;
    end if;
    return query
    select s.name, array_agg(c.name), pgrag.embed_query(query, s.name)
    from pgrag._visible_collections(asked) as c
    inner join pgrag.collection_space as cs on cs.collection_id = c.collection_id
    inner join pgrag.space as s on s.space_id = cs.space_id and s.query_encoder is not null
    where case when in_space is null then s.space_id = c.active_space_id else s.name = in_space end
    group by s.name
    order by s.name;
end
$$;

comment on function pgrag._query_vectors(text, halfvec, text[], text) is
'Finds what each dense arm of a search compares: a vector, the space it belongs to, and the collections there.
A given embedding is one arm; else there is one per space with a query encoder that the visible collections use, with the query embedded in SQL; else none, and the search is lexical.';
