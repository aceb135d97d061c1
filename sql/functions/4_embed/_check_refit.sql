-- Refuses a space whose documents are embedded by its token table, and would not belong to another.
create or replace function pgrag._check_refit(space_id int) returns void
language plpgsql stable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    name text := (select s.name from pgrag.space as s where s.space_id = _check_refit.space_id and s.kind = 'static');
begin
    if name is not null then
        raise exception 'the documents of space "%" are embedded by its own token table, and would not belong to another', name
            using errcode = 'RG005',
            hint = 'Make a space of kind static for the other table, attach it, activate it; or a space of the model, and fit that one.';
    end if;
end
$$;

comment on function pgrag._check_refit(int) is
'Refuses a space whose documents are embedded by its token table: another table would not belong to their vectors. Error RG005.';
