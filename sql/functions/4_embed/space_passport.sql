-- Tells what made the vectors of a space.
create or replace function pgrag.space_passport(space text) returns jsonb
language sql stable parallel safe security invoker
begin atomic
select s.passport || coalesce(f.figures, '{}') || jsonb_build_object('name', s.name, 'model', s.model, 'dimension', s.dimension, 'normalised', s.normalised)
from pgrag.space as s
left join pgrag.space_figures as f on f.space_id = s.space_id
where s.space_id = pgrag._space_id(space);
end;

comment on function pgrag.space_passport(text) is
'Tells what made the vectors of a space: its passport, with what was measured, name, model, dimension and normalised. For members of pgrag_writer and pgrag_owner. Error RG005.';
