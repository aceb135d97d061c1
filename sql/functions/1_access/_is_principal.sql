-- Tells whether a text can be the name of a principal.
create or replace function pgrag._is_principal(name text) returns boolean
language sql immutable parallel safe security invoker
begin atomic
select name ~ '^(public|(user|group|role):\S.{0,199})$';
end;

comment on function pgrag._is_principal(text) is
'Tells whether a text can be the name of a principal: `public`, or `user:`, `group:` or `role:` and 1 to 200 characters. NULL gives NULL.';
