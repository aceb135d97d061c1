-- Who may read: principals, the groups that hold them, and access control lists.
create table pgrag.principal (
    name text not null,
    created_at timestamptz not null default now(),
    constraint principal_pkey primary key (name),
    constraint principal_name_check check (name ~ '^(public|(user|group|role):\S.{0,199})$')
);

comment on table pgrag.principal is 'Someone who may read: a person, a group, a database role, or everybody.';
comment on column pgrag.principal.name is '`user:ana`, `group:hr`, `role:app_ro` or `public`; at most 206 characters.';

insert into pgrag.principal (name) values ('public');

create table pgrag.membership (
    group_name text not null,
    member text not null,
    constraint membership_pkey primary key (group_name, member),
    constraint membership_group_name_check check (group_name like 'group:%'),
    constraint membership_member_check check (member <> group_name and member <> 'public'),
    constraint membership_group_name_fkey foreign key (group_name) references pgrag.principal (name) on delete cascade,
    constraint membership_member_fkey foreign key (member) references pgrag.principal (name) on delete cascade
);

create index membership_member_idx on pgrag.membership (member, group_name);
comment on table pgrag.membership is 'Who is in which group; groups nest, cycles are refused.';
comment on column pgrag.membership.member is 'A person, a role or another group.';
