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

create table pgrag.new_posting (
    term bigint constraint posting_term_not_null not null,
    collection_id int constraint posting_collection_id_not_null not null,
    acl_id int constraint posting_acl_id_not_null not null,
    n int constraint posting_n_not_null not null,
    sign smallint constraint posting_sign_not_null not null,
    max_tf smallint constraint posting_max_tf_not_null not null,
    min_ratio smallint constraint posting_min_ratio_not_null not null,
    entries bigint[] constraint posting_entries_not_null not null
)
with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.1);

alter table pgrag.new_posting alter column entries set storage external;

-- A chunk that was changed and not compacted has several postings of a term; a run is in the order of its entries.
insert into pgrag.new_posting (term, collection_id, acl_id, n, sign, max_tf, min_ratio, entries)
select f.term, f.collection_id, f.acl_id, count(*), f.sign, max((f.entry >> 15) & 255),
    min((f.entry & 32767) / ((f.entry >> 15) & 255)), array_agg(f.entry order by f.entry)
from (
    select u.term, u.collection_id, u.acl_id, u.sign, u.entry,
        row_number() over (partition by u.collection_id, u.term, u.acl_id, u.sign order by u.entry) as place
    from (
        select p.collection_id, p.term, p.acl_id, p.sign,
            (unnest(p.chunk_ids) << 23) | (unnest(p.tfs)::bigint << 15) | unnest(p.lengths)::bigint as entry
        from pgrag.posting as p
    ) as u
) as f
group by f.term, f.collection_id, f.acl_id, f.sign, (f.place - 1) / 240;

drop table pgrag.posting cascade;
alter table pgrag.new_posting rename to posting;
alter table pgrag.posting add constraint posting_sign_check check (sign in (-1, 1));

create index posting_term_idx on pgrag.posting (collection_id, term, acl_id);
analyze pgrag.posting;
comment on table pgrag.posting is 'Runs of postings of one term under one ACL. Deleting appends the same postings with sign -1; readers sum the signs; compact() merges.';
comment on column pgrag.posting.term is 'hashtextextended(lexeme, 0) of the lexeme in collation C.';
comment on column pgrag.posting.n is 'Postings in the run, so that document frequency needs no array.';
comment on column pgrag.posting.max_tf is 'Highest term frequency in the run; with min_ratio it bounds what the run can give to a score.';
comment on column pgrag.posting.min_ratio is 'Smallest length / tf in the run, rounded down.';
comment on column pgrag.posting.entries is 'Postings, at most 240 and ascending: chunk_id << 23 | tf << 15 | length. tf saturates at 255, length (lexemes of the chunk) at 32,767. Short enough to stay in the row, uncompressed.';
