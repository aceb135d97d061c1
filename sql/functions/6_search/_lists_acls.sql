-- Tells whether the caller's ACLs are listed to find the statistics that they may see.
create or replace function pgrag._lists_acls() returns boolean
language sql stable parallel safe security invoker
begin atomic
select case
    when length(pgrag.visible_acl_bits(current_user)) > 1024 then pgrag._few_acl_ids() is not null
    else false
end;
end;

comment on function pgrag._lists_acls() is
'Tells whether the caller''s ACLs are listed to find the statistics that they may see: where there are more than 1,024 ACLs and the caller has few of them, see pgrag._few_acl_ids(). To go through a thousand costs less than to list them.';
