-- Writes figures that were measured of a space into its passport.
create or replace function pgrag.note_figures(space text, figures jsonb) returns void
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    update pgrag.space as s
    set passport = s.passport || jsonb_build_object('figures', coalesce(s.passport -> 'figures', '{}') || note_figures.figures)
    where s.space_id = pgrag._query_space(coalesce(space, ''));
end
$$;

comment on function pgrag.note_figures(text, jsonb) is
'Writes figures that were measured of a space into its passport, under `figures`: keys that are there already are replaced, others stay. For members of pgrag_owner. Error RG005.';
