-- Gives the rows of a random rotation: a cosine transform whose inputs have random signs.
create or replace function pgrag._rotation(dimension int, seed bigint)
returns table (place int, axis vector)
language sql immutable parallel safe strict security invoker
set search_path from current
as $$
select r.place,
    array_agg(
        (case when hashint8extended(c.place, seed) & 1 = 0 then 1 else -1 end)
        * case when r.place = 0 then sqrt(1.0::float8 / dimension) else sqrt(2.0::float8 / dimension) end
        * cos(pi() * (c.place + 0.5) * r.place / dimension)
        order by c.place
    )::vector
from generate_series(0, dimension - 1) as r (place)
cross join generate_series(0, dimension - 1) as c (place)
group by r.place
order by r.place;
$$;

comment on function pgrag._rotation(int, bigint) is
'Gives the rows of a random rotation, places from 0: the orthogonal cosine transform (DCT-II) of inputs with random signs, so that what one number says is spread over all. The same for the same seed.
Ailon and Chazelle 2009 (fast Johnson-Lindenstrauss transform).';
