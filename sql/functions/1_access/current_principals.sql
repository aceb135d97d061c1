-- Lists whom the caller counts as, for access.
create or replace function pgrag.current_principals() returns text[]
language sql stable parallel safe security invoker
begin atomic
select pgrag._principals_of(current_user);
end;

comment on function pgrag.current_principals() is
'Lists whom the caller counts as, for access.
For a member of pgrag_app: nothing until pgrag.act_as was called in this transaction, then `public`, the given names and every group that holds them. For anyone else: `public`, `role:<name>` of each role they are a member of, and the groups of these. Sorted; never NULL.';
