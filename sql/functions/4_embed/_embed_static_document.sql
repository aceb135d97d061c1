-- Embeds, in SQL, what a static space still lacks of one document.
create or replace function pgrag._embed_static_document(collection_id int, document_id bigint) returns int
language plpgsql volatile parallel unsafe security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    in_space int;
    written int := 0;
    total int := 0;
begin
    for in_space in
        select s.space_id
        from pgrag.collection_space as cs
        inner join pgrag.space as s on s.space_id = cs.space_id and s.kind = 'static'
        where cs.collection_id = _embed_static_document.collection_id
    loop
        -- A text without a known token has no vector; it leaves the queue all the same, and lexical search has it.
        execute format(
            'with due as (
                delete from pgrag.embed_queue as q
                using pgrag.chunk as c
                where q.space_id = $1 and q.chunk_id = c.chunk_id and q.collection_id = $2
                    and c.collection_id = $2 and c.document_id = $3
                returning c.collection_id, c.chunk_id, c.acl_id, c.context, c.content
            )
            insert into pgrag.%I (collection_id, chunk_id, acl_id, embedding)
            select v.collection_id, v.chunk_id, v.acl_id, v.embedding
            from (
                select d.*, pgrag._embed_static($1, d.context || E''\n'' || d.content) as embedding from due as d
            ) as v
            where v.embedding is not null
            on conflict (collection_id, chunk_id) do update set embedding = excluded.embedding', 'embedding_' || in_space
        ) using in_space, _embed_static_document.collection_id, _embed_static_document.document_id;
        get diagnostics written = row_count;
        total := total + written;
    end loop;
    return total;
end
$$;

comment on function pgrag._embed_static_document(int, bigint) is
'Embeds, in SQL, what the static spaces of a collection still lack of one document; returns how many vectors were written. Definer, since writers may not read every encoder table.';
