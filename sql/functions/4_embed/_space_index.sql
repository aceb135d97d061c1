-- Writes the statement that makes the approximate index of a space.
create or replace function pgrag._space_index(space text, online boolean default true) returns text
language plpgsql stable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    of_space pgrag.space;
    lists int;
    options text;
begin
    select * into strict of_space from pgrag.space as s where s.space_id = pgrag._space_id(space);
    if of_space.index_kind = 'none' then
        return null;
    end if;
    if of_space.index_kind = 'hnsw' then
        options := format('m = %s, ef_construction = %s',
            coalesce(of_space.index_options ->> 'm', '16'), coalesce(of_space.index_options ->> 'ef_construction', '64'));
    else
        -- pgvector's advice: a list for 1,000 vectors up to a million, then the square root.
        select greatest(10, least(32768, case when c.reltuples > 1e6 then sqrt(c.reltuples) else c.reltuples / 1000 end))::int into lists
        from pg_class as c where c.oid = format('pgrag.embedding_%s', of_space.space_id)::regclass;
        options := format('lists = %s', coalesce(of_space.index_options ->> 'lists', lists::text));
    end if;
    return format('create index%7$s if not exists embedding_%1$s_%2$s_idx on pgrag.embedding_%1$s using %2$s (%3$s %4$s.%5$s) with (%6$s)',
        of_space.space_id, of_space.index_kind,
        case of_space."precision" when 'bit' then 'code' else 'embedding' end,
        pgrag._vector_schema(),
        case of_space."precision" when 'bit' then 'bit_hamming_ops' when 'vector' then 'vector_cosine_ops' else 'halfvec_cosine_ops' end,
        options, case when online then ' concurrently' else '' end);
end
$$;

comment on function pgrag._space_index(text, boolean) is
'Writes the statement that makes the approximate index of a space, for a member of pgrag_owner; NULL where it has none. online: beside searches and writes, outside a transaction. lists of ivfflat, unless given: one for 1,000 vectors that are there now, at least 10. Error RG005.';
