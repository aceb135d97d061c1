-- Makes principals known, so that documents may name them as readers.
create or replace function pgrag.create_principals(variadic names text[]) returns int
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    wrong text;
    made int;
begin
    select coalesce(p.name, 'NULL') into wrong from unnest(names) as p (name) where pgrag._is_principal(p.name) is not true limit 1;
    if found then
        raise exception '"%" is not the name of a principal', wrong
            using errcode = 'RG022', hint = 'Names are public, user:NAME, group:NAME or role:NAME.';
    end if;
    insert into pgrag.principal (name)
    select distinct p.name from unnest(names) as p (name)
    where not exists (select from pgrag.principal as q where q.name = p.name)
    order by p.name
    on conflict (name) do nothing;
    get diagnostics made = row_count;
    return made;
end
$$;

comment on function pgrag.create_principals(text[]) is
'Makes principals known, so that documents may name them as readers. Returns how many were new. For members of pgrag_writer and pgrag_owner. Error RG022: a malformed name.';
