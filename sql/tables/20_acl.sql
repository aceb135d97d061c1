-- Access control lists: one per distinct set of entries in a collection.
create table pgrag.acl (
    collection_id int not null,
    acl_id int generated always as identity,
    digest bytea not null,
    constraint acl_pkey primary key (collection_id, acl_id),
    constraint acl_acl_id_key unique (acl_id),
    constraint acl_digest_key unique (collection_id, digest),
    constraint acl_collection_id_fkey foreign key (collection_id) references pgrag.collection (collection_id) on delete cascade
);

comment on table pgrag.acl is 'One row per distinct set of entries in a collection; documents with the same readers share it.';
comment on column pgrag.acl.acl_id is 'Unique in the database; the position of its bit in pgrag.visible_acl_bits.';
comment on column pgrag.acl.digest is 'sha256 of the sorted entries, so that the same set is found again.';

create table pgrag.acl_entry (
    collection_id int not null,
    acl_id int not null,
    principal text not null,
    allow boolean not null,
    constraint acl_entry_pkey primary key (collection_id, acl_id, principal),
    constraint acl_entry_acl_fkey foreign key (collection_id, acl_id) references pgrag.acl (collection_id, acl_id) on delete cascade,
    constraint acl_entry_principal_fkey foreign key (principal) references pgrag.principal (name)
);

create index acl_entry_principal_idx on pgrag.acl_entry (principal, acl_id) include (allow);
comment on table pgrag.acl_entry is 'The entries of an ACL; a deny wins over any allow.';
comment on column pgrag.acl_entry.allow is 'false: a deny entry.';

create table pgrag.access_change (
    n bigint not null
);

comment on table pgrag.access_change is 'A counter as a log: its sum moves when memberships or ACL entries change. Appended to, so that writers never wait; folded by compact().';
