-- Lists the collections that a search covers, with the statistics of what the caller may see in them.
create or replace function pgrag._visible_collections(collections text[])
returns table (
    collection_id int, name text, analyzer text, k1 float8, b float8, active_space_id int, chunks bigint, lexemes bigint
)
language sql stable parallel safe security invoker
begin atomic
select c.collection_id, c.name, c.analyzer, c.k1, c.b, c.active_space_id, s.chunks, s.lexemes
from pgrag.collection as c
cross join lateral (
    select sum(t.chunks) as chunks, sum(t.lexemes) as lexemes from pgrag.corpus_stat as t
    where t.collection_id = c.collection_id
) as s
where (collections is null or c.name = any(collections)) and s.chunks > 0
order by c.collection_id;
end;

comment on function pgrag._visible_collections(text[]) is
'Lists the collections that a search covers, with the statistics of what the caller may see in them: chunks, and lexemes over all of them.
collections: names; NULL: all. A name that is unknown, or of which the caller may see nothing, gives no row.';
