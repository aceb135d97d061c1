-- Lists collections with the chunks in them, so that a long job can say how far it is.
create or replace function pgrag._collection_sizes(collection text default null)
returns table (name text, chunks bigint)
language plpgsql stable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if collection is not null then
        perform pgrag._collection_id(collection);
    end if;
    return query
    select c.name, count(h.chunk_id)
    from pgrag.collection as c
    left join pgrag.chunk as h on h.collection_id = c.collection_id
    where collection is null or c.name = collection
    group by c.name
    order by c.name;
end
$$;

comment on function pgrag._collection_sizes(text) is
'Lists collections with the chunks in them, by name, counted and not taken from corpus_stat. NULL: all. For members of pgrag_writer and pgrag_owner. Error RG002.';
