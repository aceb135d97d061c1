-- Lists the ACLs of what everybody may read.
create or replace function pgrag._open_acl_ids() returns int[]
language sql stable parallel safe security invoker
begin atomic
select coalesce(array_agg(o.acl_id order by o.acl_id), '{}')
from (
    select e.acl_id
    from pgrag.acl_entry as e
    group by e.acl_id
    having bool_or(e.principal = 'public') and bool_and(e.allow)
) as o;
end;

comment on function pgrag._open_acl_ids() is
'Lists the ACLs of what everybody may read: those that allow `public` and deny nobody; ascending. What is derived from their rows alone tells no caller of others. For members of pgrag_owner.';
