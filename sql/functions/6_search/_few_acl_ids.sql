-- Lists the ACLs the caller may read through, where they are few enough to be an index condition.
create or replace function pgrag._few_acl_ids() returns int[]
language sql stable parallel safe security invoker
begin atomic
select case when bit_count(pgrag.visible_acl_bits(current_user)) <= 256 then pgrag.visible_acl_ids(current_user) end;
end;

comment on function pgrag._few_acl_ids() is
'Lists the ACLs the caller may read through, where they are few enough (256) to be an index condition; else NULL, and the policy filters alone. Only for speed: what is visible is the policy''s to say.';
