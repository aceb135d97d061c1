-- Tells whether a space of that name is there.
create or replace function pgrag.has_space(name text) returns boolean
language sql stable parallel safe security invoker
begin atomic
select exists(select from pgrag.space as s where s.name = has_space.name);
end;

comment on function pgrag.has_space(text) is
'Tells whether a space of that name is there; for a reader, one of a collection that they may see.';
