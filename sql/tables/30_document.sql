-- Documents, their text, and what changed when.
create table pgrag.document (
    collection_id int not null,
    document_id bigint generated always as identity,
    acl_id int not null,
    uri text not null,
    title text,
    language text,
    content_hash bytea not null,
    metadata jsonb not null default '{}',
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    constraint document_pkey primary key (collection_id, document_id),
    constraint document_acl_id_key unique (collection_id, document_id, acl_id),
    constraint document_uri_key unique (collection_id, uri),
    constraint document_uri_check check (uri <> '' and octet_length(uri) <= 2000),
    constraint document_metadata_check check (jsonb_typeof(metadata) = 'object'),
    constraint document_collection_id_fkey foreign key (collection_id) references pgrag.collection (collection_id),
    constraint document_acl_fkey foreign key (collection_id, acl_id) references pgrag.acl (collection_id, acl_id)
);

create index document_acl_idx on pgrag.document (collection_id, acl_id);
comment on table pgrag.document is 'A document; its acl_id says who may read it and everything made from it.';
comment on column pgrag.document.uri is 'Unique in its collection: a path, a URL or any key of the application; at most 2,000 bytes, so that it fits into an index.';
comment on column pgrag.document.title is 'NULL where the document has none.';
comment on column pgrag.document.language is 'BCP 47 tag, which says by which configuration the text is analysed; NULL where it is unknown: by the collection''s.';
comment on column pgrag.document.content_hash is 'sha256 of the source; an unchanged document is not parsed again.';
comment on column pgrag.document.metadata is 'JSON object that search filters by containment.';

create table pgrag.document_text (
    collection_id int not null,
    document_id bigint not null,
    acl_id int not null,
    content text not null,
    constraint document_text_pkey primary key (collection_id, document_id),
    constraint document_text_document_fkey foreign key (collection_id, document_id, acl_id)
    references pgrag.document (collection_id, document_id, acl_id) on update cascade on delete cascade
);

comment on table pgrag.document_text is 'The text of a document that the spans of its chunks point into.';

create table pgrag.document_history (
    history_id bigint generated always as identity,
    collection_id int not null,
    document_id bigint not null,
    uri text not null,
    change text not null,
    acl_id int not null,
    content_hash bytea not null,
    changed_at timestamptz not null default now(),
    changed_by text not null default session_user,
    constraint document_history_pkey primary key (history_id),
    constraint document_history_change_check check (change in ('created', 'changed', 'moved', 'deleted')),
    constraint document_history_collection_id_fkey foreign key (collection_id)
    references pgrag.collection (collection_id) on delete cascade
);

create index document_history_document_idx on pgrag.document_history (collection_id, document_id);
comment on table pgrag.document_history is 'What changed when; readers have no access.';
comment on column pgrag.document_history.change is '`created`, `changed` (content, title or metadata), `moved` (another ACL) or `deleted`.';
comment on column pgrag.document_history.acl_id is 'The ACL after the change; for `deleted`, the last one.';
