-- Refuses a model that is not the one a space was made for.
create or replace function pgrag.check_space(space text, model text, dimension int) returns void
language plpgsql stable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    found_space pgrag.space;
begin
    select * into strict found_space from pgrag.space as s where s.space_id = pgrag._query_space(space);
    if found_space.model <> check_space.model or found_space.dimension <> check_space.dimension then
        raise exception 'space "%" holds vectors of % of dimension %, got those of % of dimension %',
            space, found_space.model, found_space.dimension, model, dimension
            using errcode = 'RG031', hint = 'Give the other model a space of its own, with another name.';
    end if;
end
$$;

comment on function pgrag.check_space(text, text, int) is
'Refuses a model that is not the one a space was made for, by name or by dimension: a vector is never compared with another model''s. For members of pgrag_writer and pgrag_owner. Errors: RG005 no such space, RG031.';
