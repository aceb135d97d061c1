-- Chooses the space that a query without a collection is embedded in.
create or replace function pgrag._query_space(space text) returns int
language plpgsql stable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    ids int[];
    names text[];
begin
    if space is not null then
        return pgrag._space_id(space);
    end if;
    select array_agg(distinct c.active_space_id), array_agg(distinct s.name order by s.name) into ids, names
    from pgrag.collection as c
    inner join pgrag.space as s on s.space_id = c.active_space_id and s.query_encoder is not null;
    if cardinality(ids) > 1 then
        raise exception 'the collections use the spaces %', '"' || array_to_string(names, '", "') || '"'
            using errcode = 'RG005', hint = format('Name the one whose vectors the query is for: space => %L', names[1]);
    end if;
    return ids[1];
end
$$;

comment on function pgrag._query_space(text) is
'Chooses the space that a query without a collection is embedded in: the named one, or the only space with a query encoder that visible collections use. NULL where none does. Error RG005: no such space, or several, which are named.';
