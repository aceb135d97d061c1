-- Lists the postings of a collection's log one by one, with their signs.
create or replace function pgrag._unpack_postings(collection_id int)
returns table (term bigint, acl_id int, sign int, chunk_id bigint, tf int, length int)
language sql stable parallel safe security invoker
begin atomic
select u.term, u.acl_id, u.sign::int, u.entry >> 23, ((u.entry >> 15) & 255)::int, (u.entry & 32767)::int
from (
    select p.term, p.acl_id, p.sign, unnest(p.entries) as entry
    from pgrag.posting as p
    where p.collection_id = _unpack_postings.collection_id
) as u;
end;

comment on function pgrag._unpack_postings(int) is
'Lists the postings of a collection''s log one by one, with their signs, in no order: what holds of a chunk is the sum of the signs. What the caller may not see is not there.';
