-- Stages documents that are there already, to be loaded once more.
create or replace function pgrag._stage_documents(
    collection text, batch_id uuid, after bigint, count int, max_tokens int, among bigint[] default null
) returns bigint
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    from_id int := pgrag._collection_id(collection);
    document_ids bigint[];
begin
    perform pgrag._check_range('count', count, 1, 100000);
    select array_agg(d.document_id order by d.document_id) into document_ids
    from (
        select d.document_id from pgrag.document as d
        where d.collection_id = from_id and d.document_id > after and (among is null or d.document_id = any(among))
        order by d.document_id
        limit count
    ) as d;
    insert into pgrag.staging (batch_id, uri, title, language, metadata, content_hash, readers, content)
    select _stage_documents.batch_id, d.uri, d.title, d.language, d.metadata, d.content_hash,
        array(
            select case when e.allow then e.principal else '!' || e.principal end
            from pgrag.acl_entry as e
            where e.collection_id = d.collection_id and e.acl_id = d.acl_id
            order by e.principal
        ),
        t.content
    from pgrag.document as d
    inner join pgrag.document_text as t on t.collection_id = d.collection_id and t.document_id = d.document_id
    where d.collection_id = from_id and d.document_id = any(document_ids);
    if max_tokens is null then
        insert into pgrag.staging (
            batch_id, uri, ordinal, heading_path, page, char_start, char_end, content, context, token_count
        )
        select _stage_documents.batch_id, d.uri, h.ordinal, h.heading_path, h.page, h.char_start, h.char_end, h.content, h.context,
            h.token_count
        from pgrag.document as d
        inner join pgrag.chunk as h on h.collection_id = d.collection_id and h.document_id = d.document_id
        where d.collection_id = from_id and d.document_id = any(document_ids);
    else
        insert into pgrag.staging (
            batch_id, uri, ordinal, heading_path, page, char_start, char_end, content, context, token_count
        )
        select _stage_documents.batch_id, d.uri, s.ordinal, s.heading_path, s.page, s.char_start, s.char_end, s.content, s.context,
            s.token_count
        from pgrag.document as d
        inner join pgrag.document_text as t on t.collection_id = d.collection_id and t.document_id = d.document_id
        cross join lateral pgrag._split_text(t.content, d.title, max_tokens) as s
        where d.collection_id = from_id and d.document_id = any(document_ids);
    end if;
    return document_ids[cardinality(document_ids)];
end
$$;

comment on function pgrag._stage_documents(text, uuid, bigint, int, int, bigint[]) is
'Stages documents that are there already, with their readers, to be loaded once more by pgrag.load_staged: at most count whose ids are above after. Returns the last document_id, NULL where none was left.
among: only of these; NULL: of all. max_tokens: cut them anew into passages of so many tokens; NULL: passages as they are. For members of pgrag_writer and pgrag_owner. Errors: RG001, RG002.';
