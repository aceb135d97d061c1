-- Compares the posting log with the chunks, by a sum of hashes per chunk: one pass over each, and no list of postings in memory.
-- The remainder keeps -hash within bigint.
create or replace function pgrag._check_postings(collection_id int)
returns table (finding text, place bigint, subject text, detail text)
language sql stable parallel safe security invoker
begin atomic
with wanted as (
    select c.chunk_id, count(*) as postings,
        sum(hashint8extended(
            hashtextextended(l.lexeme collate "C", 0),
            c.acl_id::bigint * 8388608 + least(cardinality(l.positions), 255) * 32768 + c.lexeme_count
        ) % 9223372036854775807) as digest
    from pgrag.chunk as c
    cross join lateral unnest(c.tsv) as l
    where c.collection_id = _check_postings.collection_id
    group by c.chunk_id
),

held as (
    select f.chunk_id, sum(f.sign) as postings,
        sum(
            f.sign * (hashint8extended(f.term, f.acl_id::bigint * 8388608 + f.tf * 32768 + f.length) % 9223372036854775807)
        ) as digest
    from pgrag._unpack_postings(_check_postings.collection_id) as f
    group by f.chunk_id
)

select 'posting' as finding, coalesce(w.chunk_id, h.chunk_id) as place,
    case
        when c.chunk_id is null then 'chunk ' || h.chunk_id
        else coalesce(d.uri, 'document ' || c.document_id) || ' #' || c.ordinal
    end as subject,
    case
        when c.chunk_id is null then format('%s postings of a chunk that is not there', h.postings)
        when coalesce(w.postings, 0) <> coalesce(h.postings, 0)
            then format('%s postings, its text has %s', coalesce(h.postings, 0), coalesce(w.postings, 0))
        else format('of %s postings some have another word, frequency, length or ACL', h.postings)
    end as detail
from wanted as w
full join held as h on h.chunk_id = w.chunk_id
left join pgrag.chunk as c
    on c.collection_id = _check_postings.collection_id and c.chunk_id = coalesce(w.chunk_id, h.chunk_id)
left join pgrag.document as d on d.collection_id = _check_postings.collection_id and d.document_id = c.document_id
where coalesce(w.postings, 0) <> coalesce(h.postings, 0) or coalesce(w.digest, 0) <> coalesce(h.digest, 0)
union all
select 'run', p.term, 'term ' || p.term || ', ACL ' || p.acl_id, 'n, max_tf, min_ratio or the order is not that of its postings'
from pgrag.posting as p
cross join lateral (
    select count(*) as n, max((e.entry >> 15) & 255) as max_tf,
        min((e.entry & 32767) / greatest((e.entry >> 15) & 255, 1)) as min_ratio, array_agg(e.entry order by e.entry) as entries
    from unnest(p.entries) as e (entry)
) as u
where p.collection_id = _check_postings.collection_id
    and (p.n, p.max_tf, p.min_ratio, p.entries) is distinct from (u.n, u.max_tf, u.min_ratio, u.entries);
end;

comment on function pgrag._check_postings(int) is
'Compares the posting log with the chunks, for check(): a row per chunk whose net postings are not those of its tsv, and per run whose summary is wrong; in no order.
Postings of a chunk are compared by number and by the sum of 64-bit hashes over term, ACL, frequency and length.';
