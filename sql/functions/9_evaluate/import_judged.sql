-- Takes in judged queries: questions whose answers are known.
create or replace function pgrag.import_judged(
    collection text,
    query_ids text[],
    queries text[],
    principals jsonb,
    judged_ids text[],
    uris text[],
    grades int[],
    out imported int, out judgements int, out unknown int
) returns record
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    into_id int := pgrag._collection_id(collection);
    wrong text;
begin
    if principals is null or jsonb_typeof(principals) <> 'array' then
        raise exception 'principals must be a JSON array of arrays of names, got %', coalesce(left(principals::text, 100), 'NULL')
            using errcode = 'RG001', hint = 'Pass a list per query, such as [["user:ana"], []].';
    end if;
    if cardinality(query_ids) is distinct from cardinality(queries) or cardinality(query_ids) is distinct from jsonb_array_length(principals) then
        raise exception 'got % query_ids, % queries and % lists of principals',
            coalesce(cardinality(query_ids), 0), coalesce(cardinality(queries), 0), coalesce(jsonb_array_length(principals), 0)
            using errcode = 'RG030', hint = 'Pass one of each per query, in the same order.';
    end if;
    if cardinality(judged_ids) is distinct from cardinality(uris) or cardinality(judged_ids) is distinct from cardinality(grades) then
        raise exception 'got % judged_ids, % uris and % grades',
            coalesce(cardinality(judged_ids), 0), coalesce(cardinality(uris), 0), coalesce(cardinality(grades), 0)
            using errcode = 'RG030', hint = 'Pass one of each per judgement, in the same order.';
    end if;
    select left(l.list::text, 100) into wrong
    from jsonb_array_elements(principals) as l (list)
    where jsonb_typeof(l.list) <> 'array' or jsonb_path_exists(l.list, 'strict $[*] ? (@.type() != "string")')
    limit 1;
    if found then
        raise exception 'principals must be a JSON array of arrays of names, got % for a query', wrong
            using errcode = 'RG001', hint = 'Pass a list per query, such as [["user:ana"], []].';
    end if;
    select n.name into wrong
    from (values
        ('query_ids', array_position(query_ids, null)), ('queries', array_position(queries, null)),
        ('judged_ids', array_position(judged_ids, null)), ('uris', array_position(uris, null)), ('grades', array_position(grades, null))
    ) as n (name, place)
    where n.place is not null
    limit 1;
    if found then
        raise exception '% must not hold NULL', wrong
            using errcode = 'RG001', hint = 'Leave out the query or the judgement that is not known.';
    end if;
    select p.name into wrong
    from jsonb_array_elements(principals) as l (list)
    cross join jsonb_array_elements_text(l.list) as p (name)
    where pgrag._is_principal(p.name) is not true or p.name like 'role:%'
    limit 1;
    if found then
        raise exception '"%" is not the name of a principal that an application can act as', wrong
            using errcode = 'RG022', hint = 'Names are public, user:NAME or group:NAME.';
    end if;

    insert into pgrag.judged_query as q (collection_id, query_id, query, principals)
    select into_id, u.query_id, u.query, array(select jsonb_array_elements_text(u.list))
    from (
        select distinct on (n.query_id) n.query_id, n.query, principals -> (n.place - 1)::int as list
        from unnest(query_ids, queries) with ordinality as n (query_id, query, place)
        order by n.query_id, n.place desc
    ) as u
    on conflict on constraint judged_query_pkey do update set query = excluded.query, principals = excluded.principals;
    get diagnostics imported = row_count;

    delete from pgrag.judgement as j where j.collection_id = into_id and j.query_id = any(query_ids);
    insert into pgrag.judgement (collection_id, query_id, uri, grade)
    select into_id, u.query_id, u.uri, max(u.grade)
    from unnest(judged_ids, uris, grades) as u (query_id, uri, grade)
    where u.query_id = any(query_ids)
    group by u.query_id, u.uri;
    get diagnostics judgements = row_count;

    select count(distinct j.uri) into unknown
    from pgrag.judgement as j
    where j.collection_id = into_id and j.query_id = any(query_ids)
        and not exists (select from pgrag.document as d where d.collection_id = into_id and d.uri = j.uri);
end
$$;

comment on function pgrag.import_judged(text, text[], text[], jsonb, text[], text[], int[]) is
'Takes in judged queries: questions whose answers are known. What is known of a query_id already is replaced, other queries stay.
query_ids and queries in the same order; principals: a JSON array of arrays of names, one per query, that pgrag.act_as is called with ([]: public only). judged_ids, uris and grades in the same order: how well the document with that uri answers that query, 0: not at all; of several grades of one document the highest counts, and those of a query that is not among query_ids are left out.
Returns how many queries and judgements were taken in, and how many of the judged uris are unknown in the collection. For members of pgrag_writer and pgrag_owner. Errors: RG001 principals of another form, or a NULL among the rest; RG002, RG022 a malformed or `role:` name, RG030 lengths differ.';
