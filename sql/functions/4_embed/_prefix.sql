-- Keeps the first numbers of a vector.
create or replace function pgrag._prefix(embedding vector, dimension int, normalised boolean) returns vector
language sql immutable parallel safe strict security invoker
set search_path from current
as $$
select case when normalised then l2_normalize(p.v) else p.v end
from (select subvector(embedding, 1, dimension) as v) as p;
$$;

comment on function pgrag._prefix(vector, int, boolean) is
'Keeps the first numbers of a vector, of length 1 again where the space is normalised: what a Matryoshka model is trained for. Kusupati et al. 2022.';
