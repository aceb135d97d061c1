-- Takes in judged queries: questions whose answers are known.
create or replace function pgrag.import_judged(
    collection text,
    query_ids text[],
    queries text[],
    principals jsonb,
    judged_ids text[],
    uris text[],
    grades int[],
    char_starts int[] default null,
    char_ends int[] default null,
    ordinals int[] default null,
    quotes text[] default null,
    answers text[] default null,
    out imported int, out judgements int, out unknown int, out changed int
) returns record
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    into_id int := pgrag._collection_id(collection);
    wrong text;
    lengths int;
    more int;
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
    select n.name, n.length into wrong, lengths
    from (values
        ('char_starts', cardinality(char_starts), cardinality(judged_ids)), ('char_ends', cardinality(char_ends), cardinality(judged_ids)),
        ('ordinals', cardinality(ordinals), cardinality(judged_ids)), ('quotes', cardinality(quotes), cardinality(judged_ids)),
        ('answers', cardinality(answers), cardinality(query_ids))
    ) as n (name, length, expected)
    where n.length <> n.expected
    limit 1;
    if found then
        raise exception 'got % %, for % queries and % judgements', lengths, wrong, cardinality(query_ids), cardinality(judged_ids)
            using errcode = 'RG030', hint = 'Pass one per query (answers) or per judgement (the others), in the same order; NULL where there is none.';
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

    -- Longer names don't fit into an index.
    select format('%s of %s bytes', n.name, octet_length(n.value)) into wrong
    from (
        select 'a query_id' as name, u.value, 500 as most from unnest(query_ids) as u (value)
        union all
        select 'a uri', u.value, 2000 from unnest(uris) as u (value)
    ) as n
    where octet_length(n.value) > n.most
    limit 1;
    if found then
        raise exception '% is too long', wrong
            using errcode = 'RG001', hint = 'A query_id has at most 500 bytes, a uri 2,000.';
    end if;

    insert into pgrag.judged_query as q (collection_id, query_id, query, principals, answer)
    select into_id, u.query_id, u.query, array(select jsonb_array_elements_text(u.list)), u.answer
    from (
        select distinct on (n.query_id) n.query_id, n.query, principals -> (n.place - 1)::int as list, n.answer
        from unnest(query_ids, queries, answers) with ordinality as n (query_id, query, answer, place)
        order by n.query_id, n.place desc
    ) as u
    on conflict on constraint judged_query_pkey do update
        set query = excluded.query, principals = excluded.principals, answer = excluded.answer;
    get diagnostics imported = row_count;

    delete from pgrag.judgement as j where j.collection_id = into_id and j.query_id = any(query_ids);
    -- What doesn't fit is read from the place of the first five; nothing is kept then.
    with wanted as materialized (
        select u.query_id, u.uri, u.grade, u.place, s.char_start, s.char_end, s.quote, s.changed, s.problem
        from unnest(judged_ids, uris, grades) with ordinality as u (query_id, uri, grade, place)
        inner join pgrag._judged_spans(into_id, uris, char_starts, char_ends, ordinals, quotes) as s on s.place = u.place
    ),
    mine as (
        select w.* from wanted as w where w.query_id = any(query_ids)
    ),
    misfit as (
        select m.*, row_number() over (order by m.place) as nth from mine as m where m.problem is not null
    ),
    kept as (
        insert into pgrag.judgement (collection_id, query_id, uri, char_start, char_end, grade, quote)
        select distinct on (m.query_id, m.uri, m.char_start, m.char_end)
            into_id, m.query_id, m.uri, m.char_start, m.char_end, m.grade, m.quote
        from mine as m
        where not exists (select from misfit)
        order by m.query_id, m.uri, m.char_start, m.char_end, m.grade desc, m.place
        returning 1
    )
    select
        (select count(*) from kept),
        (select count(*) from mine as m where m.changed),
        (
            select string_agg(format('query "%s", document "%s": %s', m.query_id, m.uri, m.problem), '; ' order by m.place)
            from misfit as m where m.nth <= 5
        ),
        (select count(*) - 5 from misfit)
    into judgements, changed, wrong, more;
    if wrong is not null then
        raise exception '%', wrong || case when more > 0 then format('; and %s more', more) else '' end
            using errcode = 'RG033', hint = 'A judgement is of a document, of a span of its text, of one of its passages, or of a quote that its text holds once.';
    end if;

    select count(distinct j.uri) into unknown
    from pgrag.judgement as j
    where j.collection_id = into_id and j.query_id = any(query_ids)
        and not exists (select from pgrag.document as d where d.collection_id = into_id and d.uri = j.uri);
end
$$;

comment on function pgrag.import_judged(text, text[], text[], jsonb, text[], text[], int[], int[], int[], int[], text[], text[]) is
'Takes in judged queries: questions whose answers are known. What is known of a query_id already is replaced, other queries stay.
query_ids and queries in the same order, and answers: what a good answer says, NULL where it is unknown; principals: a JSON array of arrays of names, one per query, that pgrag.act_as is called with ([]: public only). A query without a judgement is one that nothing answers.
judged_ids, uris and grades in the same order: how well the document with that uri answers that query, 0 or less: not at all. What of it: char_starts and char_ends, in characters from 0, the end exclusive; or the passage with an ordinal, kept as its span; or a quote that the text holds once, with the same white space or, if it is nowhere so, with other; NULL where the whole document is judged. A span with a quote that it doesn''t read is moved to where the quote stands, once, else it stays and is counted as changed. Spans, ordinals and quotes of a document that the collection doesn''t hold are not checked: a span stays, the others become judgements of the whole document.
Of several grades of one span the highest counts; those of a query that is not among query_ids are left out.
Returns how many queries and judgements were taken in, how many of the judged uris are unknown in the collection, and how many spans no longer read as their quote. For members of pgrag_writer and pgrag_owner. Errors: RG001 principals of another form, a NULL among the rest, or a query_id of more than 500 bytes or a uri of more than 2,000; RG002, RG022 a malformed or `role:` name, RG030 lengths differ, RG033 a span, an ordinal or a quote that doesn''t fit its document.';
