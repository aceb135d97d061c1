-- Keeps figures that were measured of a space.
create or replace function pgrag.note_figures(space text, figures jsonb) returns void
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgrag._check_object('figures', figures);
    insert into pgrag.space_figures as f (space_id, figures)
    values (pgrag._space_id(space), jsonb_build_object('figures', note_figures.figures))
    on conflict on constraint space_figures_pkey do update
    set figures = f.figures || jsonb_build_object('figures', coalesce(f.figures -> 'figures', '{}') || note_figures.figures);
end
$$;

comment on function pgrag.note_figures(text, jsonb) is
'Keeps figures that were measured of a space, which writers see in its passport under `figures`: keys that are there already are replaced, others stay. For members of pgrag_owner. Errors: RG001 figures isn''t a JSON object, RG005.';
