-- Refuses a membership that would close a circle of groups.
create or replace function pgrag._check_membership() returns trigger
language plpgsql volatile parallel unsafe security definer
set search_path = pg_catalog, pg_temp
set row_security = on
as $$
begin
    -- Two transactions could each add half of a circle; so one at a time, and the second must see what the first did.
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        raise exception 'a circle of groups can''t be ruled out in a % transaction', current_setting('transaction_isolation')
            using errcode = 'RG023', hint = 'Change memberships in a READ COMMITTED transaction.';
    end if;
    perform pg_advisory_xact_lock(hashtextextended('pgrag.membership', 0));
    if exists (
        with recursive holder (name) as (
            select new.group_name
            union
            select m.group_name from pgrag.membership as m inner join holder as h on h.name = m.member
        )
        select from holder as h where h.name = new.member
    ) then
        raise exception '"%" can''t be a member of "%": that group is, directly or not, in it', new.member, new.group_name
            using errcode = 'RG023', hint = 'Take the other membership away first: select pgrag.remove_member(group, member)';
    end if;
    return new;
end
$$;

comment on function pgrag._check_membership() is
'Refuses a membership that would close a circle of groups, and any in a transaction with an older snapshot than READ COMMITTED has. Trigger on membership. Error RG023.';
