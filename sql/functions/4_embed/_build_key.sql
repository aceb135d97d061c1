-- Names the advisory lock of whoever builds the index of a space; its second number is the space_id.
create or replace function pgrag._build_key() returns int
language sql immutable parallel safe security invoker
begin atomic
select 1886216295;
end;

comment on function pgrag._build_key() is
'Names the advisory lock of whoever builds the index of a space: the first of its two numbers, of which the second is the space_id.';
