-- Lists the judged queries of a collection with what answers them.
create or replace function pgrag.judged_queries(collection text)
returns table (query_id text, query text, principals text[], grades jsonb, known int)
language plpgsql stable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    of_id int := pgrag._collection_id(collection);
begin
    return query
    select q.query_id, q.query, q.principals, coalesce(g.grades, '{}'), coalesce(g.known, 0)
    from pgrag.judged_query as q
    left join (
        select u.query_id, jsonb_object_agg(u.uri, u.grade) as grades,
            (count(d.uri) filter (where u.grade > 0))::int as known
        from (
            select j.query_id, j.uri, max(j.grade) as grade
            from pgrag.judgement as j
            where j.collection_id = of_id
            group by j.query_id, j.uri
        ) as u
        left join pgrag.document as d on d.collection_id = of_id and d.uri = u.uri
        group by u.query_id
    ) as g on g.query_id = q.query_id
    where q.collection_id = of_id
    order by q.query_id;
end
$$;

comment on function pgrag.judged_queries(text) is
'Lists the judged queries of a collection with what answers them, by query_id.
principals: who asks; empty: public only. grades: the highest grade of each judged document, by uri, spans taken together. known: how many documents with a grade above 0 the collection holds. For members of pgrag_writer and pgrag_owner. Error RG002.';
