-- The inverted index: a signed log of postings, and the statistics of BM25.
create table pgrag.posting (
    term bigint not null,
    collection_id int not null,
    acl_id int not null,
    n int not null,
    sign smallint not null,
    max_tf smallint not null,
    min_ratio smallint not null,
    entries bigint[] not null,
    constraint posting_sign_check check (sign in (-1, 1))
)
with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.1);

alter table pgrag.posting alter column entries set storage external;

create index posting_term_idx on pgrag.posting (collection_id, term, acl_id);
comment on table pgrag.posting is 'Runs of postings of one term under one ACL. Deleting appends the same postings with sign -1; readers sum the signs; compact() merges.';
comment on column pgrag.posting.term is 'hashtextextended(lexeme, 0) of the lexeme in collation C.';
comment on column pgrag.posting.n is 'Postings in the run, so that document frequency needs no array.';
comment on column pgrag.posting.max_tf is 'Highest term frequency in the run; with min_ratio it bounds what the run can give to a score.';
comment on column pgrag.posting.min_ratio is 'Smallest length / tf in the run, rounded down.';
comment on column pgrag.posting.entries is 'Postings, at most 240 and ascending: chunk_id << 23 | tf << 15 | length. tf saturates at 255, length (lexemes of the chunk) at 32,767. Short enough to stay in the row, uncompressed.';

create table pgrag.compaction (
    only_row boolean not null default true,
    last_collection_id int not null,
    last_term bigint not null,
    last_acl_id int not null,
    constraint compaction_pkey primary key (only_row),
    constraint compaction_only_row_check check (only_row)
);

comment on table pgrag.compaction is 'How far compact() has come: one row with the last key of posting that it looked at, or none.';

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
    lexemes bigint not null,
    analyzer text collate "C" not null
);

create index corpus_stat_acl_idx on pgrag.corpus_stat (collection_id, acl_id);
comment on table pgrag.corpus_stat is 'Chunks and lexemes per ACL and analyzer as signed rows, summed at query time over what the caller may see; folded by compact().';
