-- Makes an embedding space and the table for its vectors.
create or replace function pgrag.create_space(
    name text,
    model text,
    dimension int,
    kind text default 'external',
    normalised boolean default true,
    index_kind text default 'hnsw',
    passport jsonb default '{}',
    "precision" text default 'halfvec',
    rotate boolean default false,
    model_dimension int default null,
    index_options jsonb default '{}',
    with_index boolean default null
) returns int
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    trained jsonb := passport -> 'matryoshka_dims';
    new_id int;
begin
    if name is null or name !~ '^[a-z][a-z0-9_.-]{0,47}$' then
        raise exception 'a space''s name has 1 to 48 of a-z, 0-9, _, . and -, and begins with a letter, got "%"', coalesce(name, 'NULL')
            using errcode = 'RG001', hint = 'Pass a name such as minilm-l6.';
    end if;
    perform pgrag._check_range('dimension', dimension, 1, 4000);
    if kind is null or kind not in ('static', 'external') or index_kind is null or index_kind not in ('hnsw', 'ivfflat', 'none')
        or "precision" is null or "precision" not in ('vector', 'halfvec', 'bit')
    then
        raise exception 'kind must be static or external, index_kind hnsw, ivfflat or none, precision vector, halfvec or bit, got "%", "%" and "%"',
            coalesce(kind, 'NULL'), coalesce(index_kind, 'NULL'), coalesce("precision", 'NULL')
            using errcode = 'RG001', hint = 'Leave them out for external, hnsw and halfvec.';
    end if;
    if model is null or normalised is null or rotate is null then
        raise exception 'model, normalised and rotate must not be NULL'
            using errcode = 'RG001', hint = 'Name the model that makes the document vectors; leave the others out.';
    end if;
    perform pgrag._check_object('passport', passport);
    model_dimension := coalesce(model_dimension, dimension);
    perform pgrag._check_range('model_dimension', model_dimension, dimension, 16000);
    if model_dimension > dimension and (trained is null or jsonb_typeof(trained) <> 'array' or not trained @> to_jsonb(dimension)) then
        raise exception '% is not trained for a prefix of % numbers: its passport names %', model, dimension,
            coalesce(nullif(trained, '[]') #>> '{}', 'none')
            using errcode = 'RG001', hint = format('Keep all %s numbers, or a prefix that the passport''s matryoshka_dims holds.', model_dimension);
    end if;
    if rotate and "precision" <> 'bit' then
        raise exception 'rotate is for the precision bit, got "%"', "precision"
            using errcode = 'RG001', hint = 'Leave it out: a rotation changes no distance between vectors that are kept in full.';
    end if;
    if "precision" = 'vector' and index_kind <> 'none' and dimension > 2000 then
        raise exception 'an index holds vectors of at most 2,000 numbers at the precision vector, got %', dimension
            using errcode = 'RG001', hint = 'Use halfvec or bit, or index_kind => ''none''.';
    end if;
    perform pgrag._check_index_options(index_kind, index_options);
    if with_index and (index_kind = 'ivfflat' or "precision" = 'bit') and index_kind <> 'none' then
        raise exception 'an index of kind % at the precision % is made of the vectors that are there, and there are none yet', index_kind, "precision"
            using errcode = 'RG001', hint = format('Leave out with_index, fill the space, and then: pgrag space build %s', name);
    end if;
    -- Looked up first, so that no number is burnt; and the conflict is that somebody else is making it right now.
    if not exists (select from pgrag.space as s where s.name = create_space.name) then
        insert into pgrag.space (
            name, model, dimension, kind, normalised, index_kind, passport, "precision", rotate, model_dimension, index_options, query_encoder
        )
        values (
            name, model, dimension, kind, normalised, index_kind, passport, "precision", rotate, model_dimension, index_options,
            case when kind = 'static' then name end
        )
        on conflict on constraint space_name_key do nothing
        returning space_id into new_id;
    end if;
    if new_id is null then
        raise exception 'space "%" exists already', name
            using errcode = 'RG004', hint = 'A space is never made over: choose another name.';
    end if;
    perform pgrag._embedding_table(new_id);
    if coalesce(with_index, "precision" <> 'bit' and index_kind = 'hnsw') and index_kind <> 'none' then
        execute pgrag._space_index(name, online => false);
    end if;
    return new_id;
end
$$;

comment on function pgrag.create_space(text, text, int, text, boolean, text, jsonb, text, boolean, int, jsonb, boolean) is
'Makes an embedding space and the table for its vectors; returns its space_id. Its state is building until pgrag.activate_space.
dimension: numbers per vector that are kept, 1 to 4,000. kind: `static` (encoded in SQL from encoder_token) or `external`. normalised: refuse vectors whose length is not 1. index_kind: `hnsw`, `ivfflat` or `none`. precision: `vector` (4 bytes a number), `halfvec` (2), or `bit` (halfvec; found by a bit a number, then ranked exactly); the word is SQL''s own, so it is quoted where it is named: `"precision" => bit`. rotate: bits are taken after a random rotation. model_dimension: numbers per vector of the model, of which the first `dimension` are kept, which the passport''s matryoshka_dims must allow; NULL: dimension. index_options: `m`, `ef_construction`, `lists`. with_index: make the index now, while it is empty; else `pgrag space build` does, which is quicker for many vectors; NULL: now for `hnsw`, except at `bit`. The lists of `ivfflat` and the centre of `bit` are taken from vectors that are there, so it can''t be true for these. For members of pgrag_owner. Errors: RG001 something out of its range, RG004 the name is taken.';
