-- Compares the statistics of BM25 and the list of lexemes with the chunks.
create or replace function pgrag._check_statistics(collection_id int)
returns table (finding text, place bigint, subject text, detail text)
language sql stable parallel safe security invoker
begin atomic
with counted as (
    select c.acl_id, c.analyzer, count(*) as chunks, sum(c.lexeme_count) as lexemes
    from pgrag.chunk as c
    where c.collection_id = _check_statistics.collection_id
    group by c.acl_id, c.analyzer
),

kept as (
    select s.acl_id, s.analyzer, sum(s.chunks) as chunks, sum(s.lexemes) as lexemes
    from pgrag.corpus_stat as s
    where s.collection_id = _check_statistics.collection_id
    group by s.acl_id, s.analyzer
),

word as materialized (
    select distinct c.acl_id, l.lexeme collate "C" as lexeme
    from pgrag.chunk as c
    cross join lateral unnest(c.tsv) as l
    where c.collection_id = _check_statistics.collection_id
)

select 'statistic' as finding, coalesce(c.acl_id, k.acl_id)::bigint as place, 'ACL ' || coalesce(c.acl_id, k.acl_id) as subject,
    format(
        'corpus_stat says %s chunks and %s lexemes by %s, there are %s and %s',
        coalesce(k.chunks, 0), coalesce(k.lexemes, 0), coalesce(c.analyzer, k.analyzer), coalesce(c.chunks, 0), coalesce(c.lexemes, 0)
    ) as detail
from counted as c
full join kept as k on k.acl_id = c.acl_id and k.analyzer = c.analyzer
where (coalesce(c.chunks, 0), coalesce(c.lexemes, 0)) <> (coalesce(k.chunks, 0), coalesce(k.lexemes, 0))
union all
select 'lexeme', w.acl_id::bigint, w.lexeme, format('chunks under ACL %s hold it, the list of lexemes does not', w.acl_id)
from word as w
where not exists (
    select from pgrag.lexeme as l
    where l.collection_id = _check_statistics.collection_id and l.acl_id = w.acl_id and l.lexeme = w.lexeme
);
end;

comment on function pgrag._check_statistics(int) is
'Compares corpus_stat and lexeme with the chunks, for check(): a row per ACL and analyzer whose sums differ, and per lexeme that is not listed; in no order.
Lexemes that no chunk holds any more may stay listed: nobody finds anything by them.';
