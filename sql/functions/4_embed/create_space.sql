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
    if name is null or name !~ '^[a-z][a-z0-9_.-]{0,47}$' then
        raise exception 'a space''s name has 1 to 48 of a-z, 0-9, _, . and -, and begins with a letter, got "%"', coalesce(name, 'NULL')
            using errcode = 'RG001', hint = 'Pass a name such as minilm-l6.';
    end if;
    perform pgrag._check_range('dimension', dimension, 1, 4000);
    if kind is null or kind not in ('static', 'external') or index_kind is null or index_kind not in ('hnsw', 'none') then
        raise exception 'kind must be static or external and index_kind hnsw or none, got "%" and "%"',
            coalesce(kind, 'NULL'), coalesce(index_kind, 'NULL')
            using errcode = 'RG001', hint = 'Leave them out for external and hnsw.';
    end if;
    if model is null or normalised is null or passport is null then
        raise exception 'model, normalised and passport must not be NULL'
            using errcode = 'RG001', hint = 'Name the model that makes the document vectors; leave the others out.';
    end if;
    -- Looked up first, so that no number is burnt; and the conflict is that somebody else is making it right now.
    if not exists (select from pgrag.space as s where s.name = create_space.name) then
        insert into pgrag.space (name, model, dimension, kind, normalised, index_kind, passport)
        values (name, model, dimension, kind, normalised, index_kind, passport)
        on conflict on constraint space_name_key do nothing
        returning space_id into new_id;
    end if;
    if new_id is null then
        raise exception 'space "%" exists already', name
            using errcode = 'RG004', hint = 'A space is never made over: choose another name.';
    end if;
    perform pgrag._embedding_table(new_id);
    return new_id;
end
$$;

comment on function pgrag.create_space(text, text, int, text, boolean, text, jsonb) is
'Makes an embedding space and the table for its vectors; returns its space_id. Its state is building until pgrag.activate_space.
dimension: numbers per vector, 1 to 4,000. kind: `static` (encoded in SQL from encoder_token) or `external`. normalised: refuse vectors whose length is not 1. index_kind: `hnsw` or `none`. For members of pgrag_owner. Errors: RG001 a name, kind or number out of its range, RG004 the name is taken.';
