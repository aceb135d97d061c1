-- Makes an embedding space and the table for its vectors.
create or replace function pgrag.create_space(
    name text,
    model text,
    dimension int,
    kind text default 'external',
    normalised boolean default true,
    index_kind text default 'hnsw',
    passport jsonb default '{}'
) returns int
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    new_id int;
begin
    if exists (select from pgrag.space as s where s.name = create_space.name) then
        raise exception 'space "%" exists already', name
            using errcode = 'RG004', hint = 'A space is never made over: choose another name.';
    end if;
    insert into pgrag.space (name, model, dimension, kind, normalised, index_kind, passport)
    values (name, model, dimension, kind, normalised, index_kind, passport)
    returning space_id into new_id;
    perform pgrag._embedding_table(new_id);
    return new_id;
end
$$;

comment on function pgrag.create_space(text, text, int, text, boolean, text, jsonb) is
'Makes an embedding space and the table for its vectors; returns its space_id. Its state is building until pgrag.activate_space.
dimension: numbers per vector, 1 to 4,000. kind: `static` (encoded in SQL from encoder_token) or `external`. normalised: refuse vectors whose length is not 1. index_kind: `hnsw` or `none`. For members of pgrag_owner. Error RG004: the name is taken.';
