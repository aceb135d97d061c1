-- Draws passages of a space's collections at random, to fit its query encoder on.
create or replace function pgrag.sample_passages(
    space text, n int, collections text[] default null, seed int default 0, hidden boolean default false
) returns table (chunk_id bigint, title text, heading_path text[], content text)
language plpgsql stable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    of_id int := pgrag._space_id(space);
    unknown text;
begin
    perform pgrag._check_range('n', n, 1, 1000000);
    perform pgrag._check_refit(of_id);
    select u.name into unknown
    from unnest(collections) as u (name)
    where not exists (
        select from pgrag.collection as c
        inner join pgrag.collection_space as cs on cs.collection_id = c.collection_id and cs.space_id = of_id
        where c.name = u.name
    )
    limit 1;
    if found then
        raise exception 'space "%" holds nothing of collection "%"', space, unknown
            using errcode = 'RG005', hint = format('First: select pgrag.attach_space(%L, %L)', unknown, space);
    end if;
    return query
    with drawn as materialized (
        select c.collection_id, c.chunk_id
        from pgrag.chunk as c
        inner join pgrag.collection_space as cs on cs.collection_id = c.collection_id and cs.space_id = of_id
        inner join pgrag.collection as o on o.collection_id = c.collection_id
        where (collections is null or o.name = any(collections))
            and (hidden or c.acl_id = any((select pgrag._open_acl_ids())::int[]))
        order by hashint8extended(c.chunk_id, seed), c.chunk_id
        limit n
    )

    select c.chunk_id, d.title, c.heading_path, c.content
    from drawn as w
    inner join pgrag.chunk as c on c.collection_id = w.collection_id and c.chunk_id = w.chunk_id
    inner join pgrag.document as d on d.collection_id = c.collection_id and d.document_id = c.document_id
    order by c.chunk_id;
end
$$;

comment on function pgrag.sample_passages(text, int, text[], int, boolean) is
'Draws passages of a space''s collections at random, to fit its query encoder on; at most n (1 to 1,000,000), by chunk_id; the same seed draws the same.
collections: names; NULL: all that the space is attached to. hidden: also passages that not everybody may read (`public`, with nobody denied); a table that was fitted on them holds traces of their words, and everybody who may use the space can read it.
For members of pgrag_owner. Errors: RG001, RG005 no such space, it holds nothing of a collection, or its documents are by its table.';
