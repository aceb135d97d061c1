-- What is installed here: one row, written by `pgrag upgrade`.
create table pgrag.installation (
    only_row boolean not null default true,
    version text not null,
    digest text not null,
    upgraded_at timestamptz not null default now(),
    constraint installation_pkey primary key (only_row),
    constraint installation_only_row_check check (only_row)
);

comment on table pgrag.installation is 'What is installed here: one row, written by pgrag upgrade.';
comment on column pgrag.installation.version is 'Release of the pgrag package that upgraded last.';
comment on column pgrag.installation.digest is 'sha256, in hex, of every repeatable SQL file that was run last.';
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
-- Embedding spaces: which model made the vectors that may be compared with each other.
create table pgrag.space (
    space_id int generated always as identity,
    name text not null,
    kind text not null,
    model text not null,
    dimension int not null,
    normalised boolean not null default true,
    index_kind text not null default 'hnsw',
    state text not null default 'building',
    passport jsonb not null default '{}',
    created_at timestamptz not null default now(),
    constraint space_pkey primary key (space_id),
    constraint space_name_key unique (name),
    constraint space_name_check check (name ~ '^[a-z][a-z0-9_.-]{0,47}$'),
    constraint space_kind_check check (kind in ('static', 'external')),
    constraint space_dimension_check check (dimension between 1 and 4000),
    constraint space_index_kind_check check (index_kind in ('hnsw', 'ivfflat', 'none')),
    constraint space_state_check check (state in ('building', 'ready', 'active', 'retired'))
);

comment on table pgrag.space is 'An embedding space: vectors of one model at one precision, with its passport.';
comment on column pgrag.space.kind is '`static`: encoded in SQL from encoder_token; `external`: vectors are written by workers or the application.';
comment on column pgrag.space.model is 'The model that makes the document vectors.';
comment on column pgrag.space.dimension is 'Numbers per vector.';
comment on column pgrag.space.normalised is 'Whether every vector has length 1; others are refused.';
comment on column pgrag.space.index_kind is 'Approximate index; `none` is exact search only.';
comment on column pgrag.space.passport is 'Revision, licence, sha256 of the weights, tokenizer, pooling, prefixes, languages, metrics.';
-- Collections: documents that share an analyzer, BM25 parameters, chunking and an embedding space.
create table pgrag.collection (
    collection_id int generated always as identity,
    name text not null,
    analyzer text not null default 'english',
    k1 float8 not null default 1.2,
    b float8 not null default 0.75,
    chunk_tokens int not null default 256,
    active_space_id int,
    created_at timestamptz not null default now(),
    constraint collection_pkey primary key (collection_id),
    constraint collection_name_key unique (name),
    constraint collection_name_check check (name ~ '^\S(.{0,98}\S)?$'),
    constraint collection_k1_check check (k1 between 0 and 10),
    constraint collection_b_check check (b between 0 and 1),
    constraint collection_chunk_tokens_check check (chunk_tokens between 16 and 8192)
);

comment on table pgrag.collection is 'Documents that share an analyzer, BM25 parameters, chunking and an embedding space.';
comment on column pgrag.collection.analyzer is 'Text search configuration for pgrag.analyze.';
comment on column pgrag.collection.k1 is 'BM25 term frequency saturation.';
comment on column pgrag.collection.b is 'BM25 length normalisation.';
comment on column pgrag.collection.chunk_tokens is 'Most tokens in a chunk.';
comment on column pgrag.collection.active_space_id is 'The space that answers dense search; NULL: lexical only.';

create table pgrag.collection_space (
    collection_id int not null,
    space_id int not null,
    constraint collection_space_pkey primary key (collection_id, space_id),
    constraint collection_space_collection_id_fkey foreign key (collection_id)
    references pgrag.collection (collection_id) on delete cascade,
    constraint collection_space_space_id_fkey foreign key (space_id) references pgrag.space (space_id)
);

create index collection_space_space_id_idx on pgrag.collection_space (space_id);
comment on table pgrag.collection_space is 'Spaces that must hold a vector for each chunk of a collection.';

alter table pgrag.collection add constraint collection_active_space_id_fkey
foreign key (collection_id, active_space_id) references pgrag.collection_space (collection_id, space_id);
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
-- Token vectors of the static query encoders, a table a space.
create table pgrag.encoder_token (
    space_id int not null,
    token text collate "C" not null,
    token_id int not null,
    embedding halfvec not null,
    constraint encoder_token_pkey primary key (space_id, token),
    constraint encoder_token_space_id_fkey foreign key (space_id) references pgrag.space (space_id) on delete cascade
);

comment on table pgrag.encoder_token is 'Token vectors of static encoders: a text''s vector is the normalised sum of its tokens''.';
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
comment on column pgrag.document.language is 'BCP 47 tag; NULL where it is unknown.';
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
-- Chunks: what is searched, ranked and cited.
create table pgrag.chunk (
    collection_id int not null,
    acl_id int not null,
    chunk_id bigint generated always as identity,
    document_id bigint not null,
    ordinal int not null,
    page int,
    char_start int not null,
    char_end int not null,
    token_count int not null,
    lexeme_count int not null,
    heading_path text[] not null default '{}',
    hash bytea not null,
    context text not null default '',
    content text not null,
    tsv tsvector not null,
    constraint chunk_pkey primary key (collection_id, chunk_id),
    constraint chunk_acl_id_key unique (collection_id, chunk_id, acl_id),
    constraint chunk_ordinal_key unique (collection_id, document_id, ordinal) deferrable initially immediate,
    constraint chunk_ordinal_check check (ordinal >= 0),
    constraint chunk_span_check check (char_start >= 0 and char_end >= char_start),
    constraint chunk_document_fkey foreign key (collection_id, document_id, acl_id)
    references pgrag.document (collection_id, document_id, acl_id) on update cascade on delete cascade
);

comment on table pgrag.chunk is 'A passage of a document: what is searched, ranked and cited.';
comment on column pgrag.chunk.ordinal is 'Place in the document, from 0.';
comment on column pgrag.chunk.page is 'Page the passage starts on, from 1; NULL where the source has no pages.';
comment on column pgrag.chunk.char_start is 'Where the passage starts in document_text.content, in characters from 0.';
comment on column pgrag.chunk.char_end is 'Where it ends, exclusive.';
comment on column pgrag.chunk.token_count is 'Tokens of content by the tokenizer of the writer; an estimate where SQL chunked.';
comment on column pgrag.chunk.lexeme_count is 'Length for BM25: positions in tsv; kept by trigger.';
comment on column pgrag.chunk.hash is 'sha256 of context and content; kept by trigger.';
comment on column pgrag.chunk.context is 'Title and headings; analysed and embedded with the content, not shown as text.';
comment on column pgrag.chunk.tsv is 'pgrag.analyze of context and content; kept by trigger.';
-- The inverted index: a signed log of postings, and the statistics of BM25.
create table pgrag.posting (
    term bigint not null,
    collection_id int not null,
    acl_id int not null,
    n int not null,
    sign smallint not null,
    max_tf smallint not null,
    min_length smallint not null,
    chunk_ids bigint[] not null,
    tfs smallint[] not null,
    lengths smallint[] not null,
    constraint posting_sign_check check (sign in (-1, 1))
);

create index posting_term_idx on pgrag.posting (collection_id, term, acl_id);
comment on table pgrag.posting is 'Runs of postings of one term under one ACL. Deleting appends the same postings with sign -1; readers sum the signs; compact() merges.';
comment on column pgrag.posting.term is 'hashtextextended(lexeme, 0) of the lexeme in collation C.';
comment on column pgrag.posting.n is 'Postings in the run, so that document frequency needs no array.';
comment on column pgrag.posting.max_tf is 'Highest term frequency in the run; bounds its impact.';
comment on column pgrag.posting.min_length is 'Shortest chunk in the run, in lexemes; bounds its impact.';
comment on column pgrag.posting.tfs is 'Term frequencies, beside chunk_ids; saturate at 255.';
comment on column pgrag.posting.lengths is 'Chunk lengths in lexemes, beside chunk_ids; saturate at 32,767.';

create table pgrag.lexeme (
    collection_id int not null,
    acl_id int not null,
    lexeme text collate "C" not null
);

create index lexeme_lexeme_idx on pgrag.lexeme (collection_id, acl_id, lexeme);
comment on table pgrag.lexeme is 'Lexemes that occur under an ACL, for prefix queries; append-only, deduplicated by compact().';

create table pgrag.corpus_stat (
    collection_id int not null,
    acl_id int not null,
    chunks int not null,
    lexemes bigint not null
);

create index corpus_stat_acl_idx on pgrag.corpus_stat (collection_id, acl_id);
comment on table pgrag.corpus_stat is 'Chunks and lexemes per ACL as signed rows, summed at query time over what the caller may see; folded by compact().';
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
-- Evaluation and observation: judged queries, runs, and a log of searches.
create table pgrag.judged_query (
    collection_id int not null,
    query_id text not null,
    query text not null,
    principals text[] not null default '{}',
    constraint judged_query_pkey primary key (collection_id, query_id),
    constraint judged_query_collection_id_fkey foreign key (collection_id)
    references pgrag.collection (collection_id) on delete cascade
);

comment on table pgrag.judged_query is 'A query with known answers, and who asks it.';
comment on column pgrag.judged_query.principals is 'Whom pgrag.act_as is called with; empty: public only.';

create table pgrag.judgement (
    judgement_id bigint generated always as identity,
    collection_id int not null,
    query_id text not null,
    uri text not null,
    char_start int,
    char_end int,
    grade int not null,
    constraint judgement_pkey primary key (judgement_id),
    constraint judgement_span_check check (
        (char_start is null and char_end is null) or (char_start >= 0 and char_end > char_start)
    ),
    constraint judgement_judged_query_fkey foreign key (collection_id, query_id)
    references pgrag.judged_query (collection_id, query_id) on delete cascade
);

create unique index judgement_span_idx on pgrag.judgement (collection_id, query_id, uri, char_start, char_end) nulls not distinct;
comment on table pgrag.judgement is 'How well a document, or a span of its text, answers a judged query.';
comment on column pgrag.judgement.char_start is 'NULL: the whole document is judged.';
comment on column pgrag.judgement.grade is '0: not relevant; higher is better.';

create table pgrag.run (
    run_id bigint generated always as identity,
    collection_id int not null,
    name text not null,
    settings jsonb not null default '{}',
    metrics jsonb not null default '{}',
    started_at timestamptz not null default now(),
    constraint run_pkey primary key (run_id),
    constraint run_collection_id_fkey foreign key (collection_id) references pgrag.collection (collection_id) on delete cascade
);

create index run_collection_id_idx on pgrag.run (collection_id);
comment on table pgrag.run is 'One evaluation of a collection: what was set, and what came out.';
comment on column pgrag.run.settings is 'Passport, collection settings and versions, so that the run can be repeated.';

create table pgrag.run_hit (
    run_id bigint not null,
    query_id text not null,
    arm text not null,
    rank int not null,
    uri text not null,
    ordinal int not null,
    score float8 not null,
    constraint run_hit_pkey primary key (run_id, query_id, arm, rank),
    constraint run_hit_rank_check check (rank >= 1),
    constraint run_hit_run_id_fkey foreign key (run_id) references pgrag.run (run_id) on delete cascade
);

comment on table pgrag.run_hit is 'What a run found, best first.';

create table pgrag.search_log (
    search_log_id bigint generated always as identity,
    searched_at timestamptz not null default now(),
    query_hash bytea not null,
    hits int not null,
    stages_ms jsonb not null default '{}',
    constraint search_log_pkey primary key (search_log_id)
);

comment on table pgrag.search_log is 'Searches that were logged on request; the query is hashed.';
comment on column pgrag.search_log.stages_ms is 'Milliseconds by stage.';
