-- Looks for chunks that a space of their collection will never hold: no vector, not queued, and no reason.
create or replace function pgrag._check_vectors(collection_id int)
returns table (finding text, place bigint, subject text, detail text)
language plpgsql stable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    of_space record;
begin
    for of_space in
        select s.space_id, s.name, s.kind
        from pgrag.collection_space as cs
        inner join pgrag.space as s on s.space_id = cs.space_id
        where cs.collection_id = _check_vectors.collection_id
        order by s.name
    loop
        if to_regclass('pgrag.embedding_' || of_space.space_id) is null then
            return query select 'space', 0::bigint, of_space.name, format('there is no table embedding_%s', of_space.space_id);
            continue;
        end if;
        return query execute format(
            'select case when e.chunk_id is null then ''vector'' else ''readers'' end, c.chunk_id,
                coalesce(d.uri, ''document '' || c.document_id) || '' #'' || c.ordinal,
                case when e.chunk_id is null
                    then format(''space %%s has no vector of it, and it is not queued'', $3)
                    else format(''its vector in space %%s is under ACL %%s, the chunk under %%s'', $3, e.acl_id, c.acl_id)
                end
            from pgrag.chunk as c
            left join pgrag.document as d on d.collection_id = c.collection_id and d.document_id = c.document_id
            left join pgrag.%I as e on e.collection_id = c.collection_id and e.chunk_id = c.chunk_id
            where c.collection_id = $1 and (
                e.acl_id <> c.acl_id
                or (
                    e.chunk_id is null
                    and not exists (select from pgrag.embed_queue as q where q.space_id = $2 and q.chunk_id = c.chunk_id)
                    and not exists (
                        select from pgrag.failure as f
                        where f.collection_id = $1 and f.uri = d.uri and f.stage = ''embed''
                    )
                    and case when $4 = ''static''
                        then pgrag._embed_static($2, c.context || E''\n'' || c.content) is not null else true end
                )
            )', 'embedding_' || of_space.space_id
        ) using _check_vectors.collection_id, of_space.space_id, of_space.name, of_space.kind;
    end loop;
end
$$;

comment on function pgrag._check_vectors(int) is
'Looks for chunks that a space of their collection will never hold, for check(): no vector, not queued, no failure that says why, and, where the space is static, a text that has a vector. Also for vectors under another ACL than their chunk, and for spaces without a table. In no order.
Whether a vector is that of the text is not checked: only the model knows.';
