-- Work that waits and work that failed.
create table pgrag.embed_queue (
    collection_id int not null,
    space_id int not null,
    chunk_id bigint not null,
    attempts int not null default 0,
    not_before timestamptz not null default now(),
    leased_until timestamptz,
    error text,
    constraint embed_queue_pkey primary key (space_id, chunk_id),
    constraint embed_queue_chunk_fkey foreign key (collection_id, chunk_id)
    references pgrag.chunk (collection_id, chunk_id) on delete cascade,
    constraint embed_queue_space_fkey foreign key (collection_id, space_id)
    references pgrag.collection_space (collection_id, space_id) on delete cascade
);

create index embed_queue_chunk_idx on pgrag.embed_queue (collection_id, chunk_id);
create index embed_queue_space_idx on pgrag.embed_queue (collection_id, space_id);
comment on table pgrag.embed_queue is 'Chunks that a space still lacks a vector for.';
comment on column pgrag.embed_queue.attempts is 'Times that a worker tried and failed.';
comment on column pgrag.embed_queue.not_before is 'Not to be tried again before this moment.';
comment on column pgrag.embed_queue.leased_until is 'A worker has it until then; NULL: free.';
comment on column pgrag.embed_queue.error is 'Why the last attempt failed; NULL: none did.';

create table pgrag.failure (
    failure_id bigint generated always as identity,
    collection_id int not null,
    stage text not null,
    uri text not null,
    reason text not null,
    failed_at timestamptz not null default now(),
    constraint failure_pkey primary key (failure_id),
    constraint failure_stage_check check (stage in ('parse', 'chunk', 'load', 'embed')),
    constraint failure_uri_key unique (collection_id, uri, stage),
    constraint failure_collection_id_fkey foreign key (collection_id) references pgrag.collection (collection_id) on delete cascade
);

comment on table pgrag.failure is 'Dead letters of ingest and embedding: the newest reason per document and stage.';

create table pgrag.staging (
    batch_id uuid not null,
    uri text not null,
    title text,
    language text,
    metadata jsonb,
    content_hash bytea,
    readers text[],
    ordinal int,
    heading_path text[],
    page int,
    char_start int,
    char_end int,
    content text not null,
    context text,
    token_count int
);

create index staging_batch_idx on pgrag.staging (batch_id);
comment on table pgrag.staging is 'Where COPY goes: writers insert, nobody selects, pgrag.load_staged moves a batch. No RLS, since COPY refuses a table that has it.';
comment on column pgrag.staging.ordinal is 'NULL: the row is the document and content its whole text; else one of its chunks.';
