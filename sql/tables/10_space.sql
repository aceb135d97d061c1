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
