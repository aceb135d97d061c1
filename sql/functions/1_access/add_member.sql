-- Puts a person, a role or a group into a group.
create or replace function pgrag.add_member(group_name text, member text) returns void
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if group_name is null or member is null or group_name not like 'group:%' then
        raise exception 'only a group has members, got "%"', coalesce(group_name, 'NULL')
            using errcode = 'RG022', hint = 'Pass group:NAME first, then the member.';
    end if;
    if member = 'public' or member = group_name then
        raise exception '"%" can''t be a member of "%"', member, group_name
            using errcode = 'RG022', hint = 'Members are user:, role: and other group: names.';
    end if;
    -- First the lock that the check of circles takes, then the names: the other way round two callers could wait for each other.
    perform pg_advisory_xact_lock(hashtextextended('pgrag.membership', 0));
    perform pgrag.create_principals(group_name, member);
    insert into pgrag.membership (group_name, member) values (add_member.group_name, add_member.member)
    on conflict on constraint membership_pkey do nothing;
end
$$;

comment on function pgrag.add_member(text, text) is
'Puts a person, a role or a group into a group; names that are new become known. Adding twice is no error.
For members of pgrag_owner. Errors: RG022 not a group or a malformed name, RG023 a circle of groups.';
