-- Reduces a vector of a space to a bit a number: the sign of what differs from the centre.
create or replace function pgrag._code(space_id int, embedding vector) returns bit varying
language plpgsql stable parallel safe strict security invoker
set search_path from current
as $$
declare
    of_space pgrag.space;
    turned vector;
begin
    select * into strict of_space from pgrag.space as s where s.space_id = _code.space_id;
    if of_space.center is not null then
        embedding := embedding - of_space.center;
    end if;
    if of_space.rotate then
        select array_agg(inner_product(a.axis, embedding) order by a.place)::vector into turned
        from pgrag.space_axis as a where a.space_id = _code.space_id;
        embedding := turned;
    end if;
    return binary_quantize(embedding);
end
$$;

comment on function pgrag._code(int, vector) is
'Reduces a vector of a space to a bit a number: 1 where it is above the space''s centre, after the space''s rotation, if it has one. Vectors that differ in few bits are likely near. Reads the space under the caller''s policy.';
