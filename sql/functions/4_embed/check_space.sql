-- Refuses a model that is not the one a space was made for.
create or replace function pgrag.check_space(space text, model text, dimension int, fingerprint text default null) returns void
language plpgsql stable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    found_space pgrag.space;
    weights text;
begin
    select * into strict found_space from pgrag.space as s where s.space_id = pgrag._space_id(space);
    weights := found_space.passport ->> 'sha256';
    -- The same weights may go by several names: a folder, or a hub's.
    if found_space.model_dimension <> check_space.dimension
        or (found_space.model <> check_space.model and (weights = fingerprint) is not true)
    then
        raise exception 'space "%" holds vectors of % of dimension %, got those of % of dimension %',
            space, found_space.model, found_space.model_dimension, model, dimension
            using errcode = 'RG031', hint = 'Give the other model a space of its own, with another name.';
    end if;
    if weights <> fingerprint then
        raise exception 'space "%" holds vectors of % with weights of sha256 %, got those of % with weights of sha256 %',
            space, found_space.model, left(weights, 16), model, left(fingerprint, 16)
            using errcode = 'RG031', hint = 'Give the other weights a space of their own, with another name.';
    end if;
end
$$;

comment on function pgrag.check_space(text, text, int, text) is
'Refuses a model that is not the one a space was made for, by its weights where both sides know their sha256, else by name, and by dimension: a vector is never compared with another model''s.
dimension: of the model. fingerprint: sha256 of the weights in hex, compared where the space''s passport has one; NULL: not compared. For a reader, a space of a collection that they may see. Errors: RG005 no such space, RG031.';
