-- Tells what searches of a collection go by, for who tunes it.
create or replace function pgrag.tunable_settings(collection text) returns jsonb
language plpgsql stable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select jsonb_build_object(
            'k1', c.k1, 'b', c.b, 'analyzer', c.analyzer, 'chunk_tokens', c.chunk_tokens, 'search', c.search_settings,
            'space', s.name, 'space_kind', s.kind, 'query_encoder', s.query_encoder
        )
        from pgrag.collection as c
        left join pgrag.space as s on s.space_id = c.active_space_id
        where c.collection_id = pgrag._collection_id(collection)
    );
end
$$;

comment on function pgrag.tunable_settings(text) is
'Tells what searches of a collection go by, for who tunes it: k1, b, analyzer, chunk_tokens, search (what pgrag.set_search_settings kept), and its space with its kind and the token table that embeds queries, NULL where there is none. For members of pgrag_writer and pgrag_owner. Error RG002.';
