-- Names the schema that pgvector's operators are in, quoted.
create or replace function pgrag._vector_schema() returns text
language sql stable parallel safe security invoker
begin atomic
select quote_ident(n.nspname)
from pg_extension as e
inner join pg_namespace as n on n.oid = e.extnamespace
where e.extname = 'vector';
end;

comment on function pgrag._vector_schema() is
'Names the schema that pgvector''s operators are in, quoted for dynamic SQL.';
