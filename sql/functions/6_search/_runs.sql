-- Lists the runs of some terms that the caller may see.
create or replace function pgrag._runs(collection_id int, terms bigint[], acl_ids int[])
returns table (term bigint, acl_id int, sign smallint, n int, max_tf smallint, min_ratio smallint, entries bigint[])
language sql stable parallel safe security invoker
begin atomic
select p.term, p.acl_id, p.sign, p.n, p.max_tf, p.min_ratio, p.entries
from pgrag.posting as p
where _runs.acl_ids is null and p.collection_id = _runs.collection_id and p.term = any(_runs.terms)
union all
select p.term, p.acl_id, p.sign, p.n, p.max_tf, p.min_ratio, p.entries
from pgrag.posting as p
where p.collection_id = _runs.collection_id and p.term = any(_runs.terms) and p.acl_id = any(_runs.acl_ids);
end;

comment on function pgrag._runs(int, bigint[], int[]) is
'Lists the runs of some terms that the caller may see, in no order. acl_ids: as pgrag._few_acl_ids gives them, an index condition; NULL: the policy filters alone.
Short enough to become part of the query that calls it.';
