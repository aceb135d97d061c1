-- Checks the vector of a query, and cuts it as those of the space were cut.
create or replace function pgrag._query_vector(of_space pgrag.space, embedding halfvec) returns halfvec
language plpgsql stable parallel safe security invoker
set search_path from current
as $$
declare
    dimension int := vector_dims(embedding);
begin
    if dimension <> of_space.model_dimension and dimension <> of_space.dimension then
        raise exception 'space "%" holds vectors of % of dimension %, got dimension %',
            of_space.name, of_space.model, of_space.model_dimension, dimension
            using errcode = 'RG031', hint = 'Embed the query with the model that the passport names.';
    end if;
    if l2_norm(embedding) = 0 then
        raise exception 'the query vector is zero, and has no direction'
            using errcode = 'RG031', hint = 'Leave out the embedding to search by words alone.';
    end if;
    if of_space.normalised and abs(l2_norm(embedding) - 1) > 0.01 then
        raise exception 'space "%" holds vectors of % of length 1, got length %', of_space.name, of_space.model, l2_norm(embedding)
            using errcode = 'RG031', hint = 'Embed the query with the model that the passport names, and normalise it.';
    end if;
    if dimension > of_space.dimension then
        embedding := pgrag._prefix(embedding::vector, of_space.dimension, of_space.normalised)::halfvec;
        if l2_norm(embedding) = 0 then
            raise exception 'the first % numbers of the query vector, which space "%" keeps, are zero, and have no direction',
                of_space.dimension, of_space.name
                using errcode = 'RG031', hint = 'Embed the query with the model that the passport names.';
        end if;
    end if;
    return embedding;
end
$$;

comment on function pgrag._query_vector(pgrag.space, halfvec) is
'Checks the vector of a query, and cuts it as those of the space were cut. Error RG031: another dimension, zero in what is kept, or not of length 1 (within 0.01) where the space is normalised.';
