-- Lists the readers, of those given, that no principal is known by.
create or replace function pgrag.unknown_readers(readers text[]) returns setof text
language sql stable parallel safe security invoker
begin atomic
select distinct ltrim(r.name, '!') as name
from unnest(readers) as r (name)
where not exists (select from pgrag.principal as p where p.name = ltrim(r.name, '!'))
order by 1;
end;

comment on function pgrag.unknown_readers(text[]) is
'Lists the readers, of those given, that no principal is known by; `!` before a deny entry is left out. Sorted. For members of pgrag_writer and pgrag_owner.';
