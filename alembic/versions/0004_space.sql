alter table pgrag.space add column "precision" text not null default 'halfvec';
alter table pgrag.space add column rotate boolean not null default false;
alter table pgrag.space add column model_dimension int;
alter table pgrag.space add column index_options jsonb not null default '{}';
alter table pgrag.space add column calibration jsonb not null default '{}';
alter table pgrag.space add column query_encoder text;
alter table pgrag.space add column paused boolean not null default false;
alter table pgrag.space add column center vector;
update pgrag.space as s set model_dimension = s.dimension, query_encoder = case when s.kind = 'static' then s.name end;
alter table pgrag.space alter column model_dimension set not null;
alter table pgrag.space add constraint space_precision_check check ("precision" in ('vector', 'halfvec', 'bit'));
alter table pgrag.space add constraint space_rotate_check check ("precision" = 'bit' or not rotate);
alter table pgrag.space add constraint space_model_dimension_check check (model_dimension >= dimension and model_dimension <= 16000);

comment on column pgrag.space.dimension is 'Numbers per vector that are kept.';
comment on column pgrag.space."precision" is
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

create index chunk_hash_idx on pgrag.chunk (hash);
