-- Identifies a set of readers, whatever their order and repetition.
create or replace function pgrag._acl_digest(readers text[]) returns bytea
language sql immutable parallel safe security invoker
begin atomic
select sha256(convert_to(coalesce(array_to_json(array_agg(r.name order by r.name collate "C"))::text, '[]'), 'UTF8'))
from (select distinct u.name from unnest(readers) as u (name)) as r;
end;

comment on function pgrag._acl_digest(text[]) is
'Identifies a set of readers, whatever their order and repetition: sha256 of the sorted names as a JSON array.';
