-- Names the token table that embeds the queries of a space.
create or replace function pgrag._query_encoder(space text) returns text
language sql stable parallel safe security invoker
begin atomic
select s.query_encoder from pgrag.space as s where s.name = space;
end;

comment on function pgrag._query_encoder(text) is
'Names the token table that embeds the queries of a space, for dense_plan; NULL where there is none, or the caller may not see the space.';
