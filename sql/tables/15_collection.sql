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
    search_settings jsonb not null default '{}',
    constraint collection_pkey primary key (collection_id),
    constraint collection_name_key unique (name),
    constraint collection_name_check check (name ~ '^\S(.{0,98}\S)?$'),
    constraint collection_k1_check check (k1 between 0 and 10),
    constraint collection_b_check check (b between 0 and 1),
    constraint collection_chunk_tokens_check check (chunk_tokens between 16 and 8192),
    constraint collection_search_settings_check check (jsonb_typeof(search_settings) = 'object')
);

comment on table pgrag.collection is 'Documents that share an analyzer, BM25 parameters, chunking and an embedding space.';
comment on column pgrag.collection.analyzer is 'Text search configuration for documents without a language.';
comment on column pgrag.collection.k1 is 'BM25 term frequency saturation.';
comment on column pgrag.collection.b is 'BM25 length normalisation.';
comment on column pgrag.collection.chunk_tokens is 'Most tokens in a chunk.';
comment on column pgrag.collection.active_space_id is 'The space that answers dense search; NULL: lexical only.';
comment on column pgrag.collection.search_settings is 'How a search that says nothing else is made: `depth`, `rrf_k`, `weights`, `fusion`; absent: the default of pgrag.search.';

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
