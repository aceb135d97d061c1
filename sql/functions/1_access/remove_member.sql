-- Takes a person, a role or a group out of a group.
create or replace function pgrag.remove_member(group_name text, member text) returns boolean
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    delete from pgrag.membership as m
    where m.group_name = remove_member.group_name and m.member = remove_member.member;
    return found;
end
$$;

comment on function pgrag.remove_member(text, text) is
'Takes a person, a role or a group out of a group; false where it was not in it. Counts from the next statement of everyone. For members of pgrag_owner.';
