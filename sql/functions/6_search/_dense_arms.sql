-- Finds what each dense arm of a search compares: a vector, its space, and the collections there.
create or replace function pgrag._dense_arms(
    query text, given halfvec, asked text[], in_space text
) returns table (of_space pgrag.space, collection_ids int[], visible bigint, embedding halfvec)
language plpgsql stable parallel restricted security invoker
set search_path from current
as $$
declare
    found record;
begin
    if given is null then
        if not exists (select from pgrag.space as s where s.query_encoder is not null) then
            return;
        end if;
        return query
        select s, array_agg(c.collection_id order by c.collection_id), sum(c.chunks)::bigint, pgrag._embed_static(s.space_id, query)
        from pgrag._visible_collections(asked) as c
        inner join pgrag.collection_space as cs on cs.collection_id = c.collection_id
        inner join pgrag.space as s on s.space_id = cs.space_id and s.query_encoder is not null
        where case when in_space is null then s.space_id = c.active_space_id else s.name = in_space end
        group by s.space_id
        order by s.name;
        return;
    end if;
    -- Asked once: what a caller may see costs more than the rest.
    for found in
        with seen as materialized (
            select c.collection_id, c.active_space_id, c.chunks from pgrag._visible_collections(asked) as c
        ),

        named as (
            select case when in_space is not null then array[in_space] else array_agg(distinct s.name order by s.name) end as names
            from seen as v
            inner join pgrag.space as s on s.space_id = v.active_space_id
        )

        select n.names, s as of_space, array_agg(v.collection_id order by v.collection_id) as collection_ids, sum(v.chunks)::bigint as visible
        from named as n
        inner join pgrag.space as s on s.name = any(n.names)
        inner join pgrag.collection_space as cs on cs.space_id = s.space_id
        inner join seen as v on v.collection_id = cs.collection_id
        group by n.names, s.space_id
    loop
        if cardinality(found.names) > 1 then
            raise exception 'the collections use % spaces: %', cardinality(found.names), array_to_string(found.names, ', ')
                using errcode = 'RG005', hint = 'A vector belongs to one: name it with space => ...';
        end if;
        of_space := found.of_space;
        collection_ids := found.collection_ids;
        visible := found.visible;
        embedding := pgrag._query_vector(of_space, given);
        return next;
    end loop;
end
$$;

comment on function pgrag._dense_arms(text, halfvec, text[], text) is
'Finds what each dense arm of a search compares: a vector, its space, and the collections there, with the number of passages that the caller may see in them.
A given embedding is one arm, in the named space or the only active one of the collections. Else there is one per space with a query encoder that the visible collections use, with the query embedded in SQL, NULL where it has no known word; else none, and the search is lexical. Errors: RG005 several spaces, RG031 a vector of another space.';
