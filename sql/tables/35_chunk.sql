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
    analyzer text collate "C" not null,
    constraint chunk_pkey primary key (collection_id, chunk_id),
    constraint chunk_acl_id_key unique (collection_id, chunk_id, acl_id),
    constraint chunk_ordinal_key unique (collection_id, document_id, ordinal) deferrable initially immediate,
    constraint chunk_chunk_id_check check (chunk_id between 1 and 1099511627775),
    constraint chunk_ordinal_check check (ordinal >= 0),
    constraint chunk_span_check check (char_start >= 0 and char_end >= char_start),
    constraint chunk_document_fkey foreign key (collection_id, document_id, acl_id)
    references pgrag.document (collection_id, document_id, acl_id) on update cascade on delete cascade
);

-- By which a text that was embedded for another chunk is found again, see pgrag.reuse_vectors.
create index chunk_hash_idx on pgrag.chunk (hash);

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
comment on column pgrag.chunk.analyzer is 'Text search configuration that tsv was made by: that of the document''s language, else the collection''s; kept by trigger.';
