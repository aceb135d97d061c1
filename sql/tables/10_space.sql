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
    precision text not null default 'halfvec',
    rotate boolean not null default false,
    model_dimension int not null,
    index_options jsonb not null default '{}',
    calibration jsonb not null default '{}',
    query_encoder text,
    paused boolean not null default false,
    center vector,
    constraint space_pkey primary key (space_id),
    constraint space_name_key unique (name),
    constraint space_name_check check (name ~ '^[a-z][a-z0-9_.-]{0,47}$'),
    constraint space_kind_check check (kind in ('static', 'external')),
    constraint space_dimension_check check (dimension between 1 and 4000),
    constraint space_index_kind_check check (index_kind in ('hnsw', 'ivfflat', 'none')),
    constraint space_state_check check (state in ('building', 'ready', 'active', 'retired')),
    constraint space_precision_check check (precision in ('vector', 'halfvec', 'bit')),
    constraint space_rotate_check check (precision = 'bit' or not rotate),
    constraint space_model_dimension_check check (model_dimension >= dimension and model_dimension <= 16000)
);

comment on table pgrag.space is 'An embedding space: vectors of one model at one precision, with its passport.';
comment on column pgrag.space.kind is '`static`: encoded in SQL from encoder_token; `external`: vectors are written by workers or the application.';
comment on column pgrag.space.model is 'The model that makes the document vectors.';
comment on column pgrag.space.dimension is 'Numbers per vector that are kept.';
comment on column pgrag.space.normalised is 'Whether every vector has length 1; others are refused.';
comment on column pgrag.space.index_kind is 'Approximate index; `none` is exact search only.';
comment on column pgrag.space.passport is 'Revision, licence, sha256 of the weights, tokenizer, pooling, prefixes, languages, metrics.';
comment on column pgrag.space.precision is
'How vectors are kept: `vector` (4 bytes a number), `halfvec` (2 bytes), `bit`: halfvec, and found by the signs of their numbers, then ranked exactly.';
comment on column pgrag.space.rotate is 'Signs are taken after a random rotation, see pgrag._rotation; for `bit`.';
comment on column pgrag.space.model_dimension is 'Numbers per vector of the model: more than dimension where a trained Matryoshka prefix is kept.';
comment on column pgrag.space.index_options is 'Of the approximate index: `m` and `ef_construction` of hnsw, `lists` of ivfflat; absent: pgvector''s own.';
comment on column pgrag.space.calibration is 'What pgrag.calibrate_space measured on this server; empty: dense search goes by what is usual.';
comment on column pgrag.space.query_encoder is 'Name of the token table that embeds queries in SQL; NULL: none does.';
comment on column pgrag.space.paused is 'Workers claim nothing of it.';
comment on column pgrag.space.center is 'Codes are signs of what differs from it, see pgrag.center_codes; NULL: from zero.';

create table pgrag.space_axis (
    space_id int not null,
    place int not null,
    axis vector not null,
    constraint space_axis_pkey primary key (space_id, place),
    constraint space_axis_space_id_fkey foreign key (space_id) references pgrag.space (space_id) on delete cascade
);

comment on table pgrag.space_axis is 'Rotations of spaces whose codes are taken after one: row `place`, from 0, of an orthogonal matrix.';

create table pgrag.space_figures (
    space_id int not null,
    figures jsonb not null,
    constraint space_figures_pkey primary key (space_id),
    constraint space_figures_space_id_fkey foreign key (space_id) references pgrag.space (space_id) on delete cascade
);

comment on table pgrag.space_figures is 'What was measured of a space, shown as part of its passport; not to readers, since it counts rows that are hidden from them.';
comment on column pgrag.space_figures.figures is '`figures`: of the last build and the last gate; `query_encoder`: of the token table.';
