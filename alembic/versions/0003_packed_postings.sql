-- One array of packed postings instead of three, at most 240 to a run, so that none leaves its row.
alter table pgrag.chunk add constraint chunk_chunk_id_check check (chunk_id between 1 and 1099511627775);

create table pgrag.compaction (
    only_row boolean not null default true,
    last_collection_id int not null,
    last_term bigint not null,
    last_acl_id int not null,
    constraint compaction_pkey primary key (only_row),
    constraint compaction_only_row_check check (only_row)
);

comment on table pgrag.compaction is 'How far compact() has come: one row with the last key of posting that it looked at, or none.';

create temporary table posting_before on commit drop as
select f.term, f.collection_id, f.acl_id, f.sign, max(f.tf) as max_tf, min(f.length / f.tf) as min_ratio,
    array_agg((f.chunk_id << 23) | (f.tf::bigint << 15) | f.length::bigint order by f.chunk_id) as entries
from (
    select u.*, row_number() over (partition by u.collection_id, u.term, u.acl_id, u.sign order by u.chunk_id) as place
    from (
        select p.collection_id, p.term, p.acl_id, p.sign,
            unnest(p.chunk_ids) as chunk_id, unnest(p.tfs) as tf, unnest(p.lengths) as length
        from pgrag.posting as p
    ) as u
) as f
group by f.collection_id, f.term, f.acl_id, f.sign, (f.place - 1) / 240;

drop table pgrag.posting cascade;

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

insert into pgrag.posting (term, collection_id, acl_id, n, sign, max_tf, min_ratio, entries)
select b.term, b.collection_id, b.acl_id, cardinality(b.entries), b.sign, b.max_tf, b.min_ratio, b.entries
from posting_before as b;

create index posting_term_idx on pgrag.posting (collection_id, term, acl_id);
comment on table pgrag.posting is 'Runs of postings of one term under one ACL. Deleting appends the same postings with sign -1; readers sum the signs; compact() merges.';
comment on column pgrag.posting.term is 'hashtextextended(lexeme, 0) of the lexeme in collation C.';
comment on column pgrag.posting.n is 'Postings in the run, so that document frequency needs no array.';
comment on column pgrag.posting.max_tf is 'Highest term frequency in the run; with min_ratio it bounds what the run can give to a score.';
comment on column pgrag.posting.min_ratio is 'Smallest length / tf in the run, rounded down.';
comment on column pgrag.posting.entries is 'Postings, at most 240 and ascending: chunk_id << 23 | tf << 15 | length. tf saturates at 255, length (lexemes of the chunk) at 32,767. Short enough to stay in the row, uncompressed.';
