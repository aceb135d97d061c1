-- Moves one staged batch of documents, with their chunks, into the collection.
create or replace function pgrag.load_staged(
    collection text, batch_id uuid, out documents int, out chunks int
) returns record
language plpgsql volatile parallel unsafe security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    into_id int := pgrag._hold_collection(collection);
    wrong text;
begin
    select s.uri into wrong from pgrag.staging as s
    where s.batch_id = load_staged.batch_id and s.ordinal is null
    group by s.uri having count(*) > 1 limit 1;
    if found then
        raise exception 'document "%" stands twice in one batch', wrong
            using errcode = 'RG007', hint = 'Give each document of a batch its own uri.';
    end if;
    select s.uri into wrong from pgrag.staging as s
    where s.batch_id = load_staged.batch_id and s.ordinal is null and (s.readers is null or s.content_hash is null)
    limit 1;
    if found then
        raise exception 'document "%" has no readers or no content hash', wrong
            using errcode = 'RG008', hint = 'Name readers, such as {public} or {group:eng}; an empty array means nobody.';
    end if;

    select s.uri into wrong from pgrag.staging as s
    where s.batch_id = load_staged.batch_id and s.ordinal is null and octet_length(s.uri) not between 1 and 2000
    limit 1;
    if found then
        raise exception 'a document''s uri has 1 to 2,000 bytes, got %', octet_length(wrong)
            using errcode = 'RG001', hint = 'Pass a path, a URL or a key of the application.';
    end if;
    perform pgrag._check_language(s.language) from pgrag.staging as s
    where s.batch_id = load_staged.batch_id and s.ordinal is null and s.language is not null;

    -- In the order of their keys, so that two batches can't wait for each other in a circle: {a,b} and {b,a} are one.
    perform pgrag._acl_id(into_id, r.readers)
    from (
        select s.readers from pgrag.staging as s
        where s.batch_id = load_staged.batch_id and s.ordinal is null
        group by s.readers
        order by pgrag._acl_digest(s.readers)
    ) as r;

    with acl as materialized (
        select r.readers, pgrag._acl_id(into_id, r.readers) as acl_id
        from (
            select distinct s.readers from pgrag.staging as s
            where s.batch_id = load_staged.batch_id and s.ordinal is null
        ) as r
    )
    insert into pgrag.document as d (collection_id, acl_id, uri, title, language, content_hash, metadata)
    select into_id, a.acl_id, s.uri, s.title, s.language, s.content_hash, coalesce(s.metadata, '{}')
    from pgrag.staging as s
    inner join acl as a on a.readers = s.readers
    where s.batch_id = load_staged.batch_id and s.ordinal is null
    order by s.uri
    on conflict on constraint document_uri_key do update
    set acl_id = excluded.acl_id, title = excluded.title, language = excluded.language,
        content_hash = excluded.content_hash, metadata = excluded.metadata, updated_at = now();
    get diagnostics documents = row_count;

    insert into pgrag.document_text as t (collection_id, document_id, acl_id, content)
    select d.collection_id, d.document_id, d.acl_id, s.content
    from pgrag.staging as s
    inner join pgrag.document as d on d.collection_id = into_id and d.uri = s.uri
    where s.batch_id = load_staged.batch_id and s.ordinal is null
    on conflict on constraint document_text_pkey do update set content = excluded.content
    where t.content <> excluded.content;

    -- A chunk with the same context and content keeps its id, postings and vectors, wherever it stands now.
    with staged as materialized (
        select d.document_id, d.acl_id, s.ordinal, coalesce(s.heading_path, '{}') as heading_path, s.page, s.char_start, s.char_end, s.content,
            s.context, s.token_count, h.hash,
            row_number() over (partition by d.document_id, h.hash order by s.ordinal) as nth
        from pgrag.staging as s
        inner join pgrag.document as d on d.collection_id = into_id and d.uri = s.uri
        cross join lateral (select pgrag._chunk_hash(s.context, s.content) as hash) as h
        where s.batch_id = load_staged.batch_id and s.ordinal is not null
    ),

    present as materialized (
        select c.chunk_id, c.document_id, c.hash,
            row_number() over (partition by c.document_id, c.hash order by c.ordinal) as nth
        from pgrag.staging as s
        inner join pgrag.document as d on d.collection_id = into_id and d.uri = s.uri
        inner join pgrag.chunk as c on c.collection_id = into_id and c.document_id = d.document_id
        where s.batch_id = load_staged.batch_id and s.ordinal is null
    ),

    gone as (
        delete from pgrag.chunk as c
        using present as p
        where c.collection_id = into_id and c.chunk_id = p.chunk_id and not exists (
            select from staged as s where s.document_id = p.document_id and s.hash = p.hash and s.nth = p.nth
        )
    ),

    kept as (
        update pgrag.chunk as c
        set ordinal = s.ordinal, page = s.page, char_start = s.char_start, char_end = s.char_end,
            heading_path = s.heading_path, token_count = s.token_count
        from present as p
        inner join staged as s on s.document_id = p.document_id and s.hash = p.hash and s.nth = p.nth
        where c.collection_id = into_id and c.chunk_id = p.chunk_id
            and (c.ordinal, c.page, c.char_start, c.char_end, c.heading_path, c.token_count)
            is distinct from (s.ordinal, s.page, s.char_start, s.char_end, s.heading_path, s.token_count)
    )

    insert into pgrag.chunk (
        collection_id, acl_id, document_id, ordinal, page, char_start, char_end, token_count, heading_path, context, content
    )
    select into_id, s.acl_id, s.document_id, s.ordinal, s.page, s.char_start, s.char_end, s.token_count,
        s.heading_path, s.context, s.content
    from staged as s
    where not exists (
        select from present as p where p.document_id = s.document_id and p.hash = s.hash and p.nth = s.nth
    )
    order by s.document_id, s.ordinal;

    select count(*) into chunks from pgrag.staging as s where s.batch_id = load_staged.batch_id and s.ordinal is not null;
    delete from pgrag.failure as f
    using pgrag.staging as s
    where s.batch_id = load_staged.batch_id and s.ordinal is null and f.collection_id = into_id and f.uri = s.uri;
    delete from pgrag.staging as s where s.batch_id = load_staged.batch_id;
end
$$;

comment on function pgrag.load_staged(text, uuid) is
'Moves one staged batch of documents, with their chunks, into the collection, in this transaction; returns how many documents and chunks the batch held.
A document with a known uri is replaced; its chunks that did not change keep their ids, postings and vectors. Definer, since nobody may select from staging; for members of pgrag_writer and pgrag_owner.
Errors: RG001 a uri out of its range or a language that is no tag, RG002 no such collection, RG003 an unknown reader, RG007 a uri twice in the batch, RG008 no readers or no content hash.';
