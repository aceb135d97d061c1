-- Lists the collections that a search covers, with the statistics of what the caller may see in them.
create or replace function pgrag._visible_collections(collections text[])
returns table (
    collection_id int, name text, analyzers text[], k1 float8, b float8, active_space_id int, chunks bigint, lexemes bigint,
    search_settings jsonb
)
language sql stable parallel safe security invoker
begin atomic
with own as materialized (
    select pgrag._few_acl_ids() as acl_ids
)

select c.collection_id, c.name, s.analyzers, c.k1, c.b, c.active_space_id, s.chunks, s.lexemes, c.search_settings
from pgrag.collection as c
cross join own as o
cross join lateral pgrag._sum_visible(c.collection_id, o.acl_ids) as s
where (collections is null or c.name = any(collections)) and s.chunks > 0
order by c.collection_id;
end;

comment on function pgrag._visible_collections(text[]) is
'Lists the collections that a search covers, with the statistics of what the caller may see in them: chunks, and lexemes over all of them.
collections: names; NULL: all. analyzers: the text search configurations that the visible chunks were analysed by, in C order; hidden chunks add none. search_settings: as pgrag.set_search_settings left them. A name that is unknown, or of which the caller may see nothing, gives no row.';
