-- Keeps the code of a vector in step with it.
create or replace function pgrag._keep_code() returns trigger
language plpgsql volatile parallel unsafe security definer
set search_path from current
as $$
begin
    new.code := pgrag._code(tg_argv[0]::int, new.embedding::vector);
    return new;
end
$$;

comment on function pgrag._keep_code() is
'Keeps the code of a vector in step with it. Row trigger on the vectors of a space of precision bit; its argument is the space_id.';
