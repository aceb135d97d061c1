-- Puts a document into a collection, or replaces it: chunked, indexed and searchable at commit.
create or replace function pgrag.put_document(
    collection text,
    uri text,
    content text,
    readers text[],
    title text default null,
    metadata jsonb default '{}',
    language text default null,
    create_readers boolean default true
) returns bigint
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    into_id int := pgrag._collection_id(collection);
    batch uuid := gen_random_uuid();
    tokens int;
    put_id bigint;
begin
    if uri is null or octet_length(uri) not between 1 and 2000 then
        raise exception 'a document''s uri has 1 to 2,000 bytes, got %', coalesce(octet_length(uri)::text, 'NULL')
            using errcode = 'RG001', hint = 'Pass a path, a URL or a key of the application.';
    end if;
    if jsonb_typeof(metadata) <> 'object' then
        raise exception 'metadata must be a JSON object, got %', metadata
            using errcode = 'RG001', hint = 'Pass something such as {"product": "vault"}.';
    end if;
    if content is null or btrim(content, E' \t\r\n') = '' then
        raise exception 'document "%" is empty', uri
            using errcode = 'RG009', hint = 'Pass its text; to take it away: select pgrag.delete_document(collection, uri)';
    end if;
    perform pgrag._check_readers(uri, readers, create_readers);
    select c.chunk_tokens into tokens from pgrag.collection as c where c.collection_id = into_id;

    insert into pgrag.staging (batch_id, uri, title, language, metadata, content_hash, readers, content)
    values (batch, uri, title, language, metadata, sha256(convert_to(content, 'UTF8')), readers, content);
    insert into pgrag.staging (
        batch_id, uri, ordinal, heading_path, page, char_start, char_end, content, context, token_count
    )
    select batch, put_document.uri, s.ordinal, s.heading_path, s.page, s.char_start, s.char_end, s.content, s.context, s.token_count
    from pgrag._split_text(put_document.content, put_document.title, tokens) as s;
    perform pgrag.load_staged(collection, batch);

    select d.document_id into strict put_id from pgrag.document as d where d.collection_id = into_id and d.uri = put_document.uri;
    perform pgrag._embed_static_document(into_id, put_id);
    return put_id;
end
$$;

comment on function pgrag.put_document(text, text, text, text[], text, jsonb, text, boolean) is
'Puts a document into a collection, or replaces it: chunked, indexed and searchable at commit; returns its document_id.
content: Markdown or plain text. readers: names of principals, `!` before one for a deny entry; an empty array means nobody. title: part of what is searched. metadata: a JSON object to filter by. language: a BCP 47 tag such as de or pt-BR, which says how the text is analysed; NULL: as the collection says. create_readers: names that are new become known; false refuses them.
Chunks that did not change keep their ids and vectors. If the collection''s space is static, vectors are made here; otherwise workers make them after commit. For members of pgrag_writer and pgrag_owner.
Errors: RG001 no uri, metadata that is no object or a language that is no tag, RG002 no such collection, RG003 an unknown reader, RG008 readers is NULL, RG009 no content, RG022 a malformed reader.';
