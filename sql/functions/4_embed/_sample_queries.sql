-- Makes queries near the vectors of a space, to measure its searches by.
create or replace function pgrag._sample_queries(space text, n int, seed int default 0) returns table (embedding vector)
language plpgsql stable parallel safe security invoker
set search_path from current
as $$
declare
    of_space pgrag.space;
    drawn text;
begin
    select * into strict of_space from pgrag.space as s where s.space_id = pgrag._space_id(space);
    -- What is drawn is numbered afterwards, so that all are gone through but only n are kept.
    drawn := format(
        'select d.embedding::vector as v, row_number() over (order by d.place, d.chunk_id) as n
        from (
            select e.embedding, e.chunk_id, hashint8extended(e.chunk_id, %%s) as place from pgrag.%I as e
            order by place, e.chunk_id limit $1
        ) as d', 'embedding_' || of_space.space_id
    );
    -- 0.64 of one vector and 0.36 of another: about as hard to find as what people type, where a vector of the space itself is easy.
    return query execute format(
        'select l2_normalize(a.v * array_fill(0.64::float4, array[$2])::vector + b.v * array_fill(0.36::float4, array[$2])::vector)
        from (%s) as a
        inner join (%s) as b on b.n = a.n
        order by a.n', format(drawn, '2 * $3::bigint + 1'), format(drawn, '2 * $3::bigint + 2')
    ) using n, of_space.dimension, seed;
end
$$;

comment on function pgrag._sample_queries(text, int, int) is
'Makes queries near the vectors of a space, to measure its searches by: at most n, of length 1 and of the dimension that the space keeps, each of two of its vectors; the same seed makes the same. Error RG005.';
