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
