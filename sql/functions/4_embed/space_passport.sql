-- Tells what made the vectors of a space.
create or replace function pgrag.space_passport(space text) returns jsonb
language sql stable parallel safe security invoker
begin atomic
select s.passport || jsonb_build_object('name', s.name, 'model', s.model, 'dimension', s.dimension, 'normalised', s.normalised)
from pgrag.space as s
where s.space_id = pgrag._query_space(coalesce(space, ''));
end;

comment on function pgrag.space_passport(text) is
'Tells what made the vectors of a space: its passport, with name, model, dimension and normalised. For members of pgrag_writer and pgrag_owner. Error RG005.';
