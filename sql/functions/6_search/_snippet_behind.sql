-- Lists the lexemes that stand behind a certain one.
create or replace function pgrag._snippet_behind(lexemes tsvector, mark text) returns setof text
language sql immutable parallel safe security invoker
begin atomic
select l.lexeme
from (
    select max(m.positions[cardinality(m.positions)]) as place from unnest(lexemes) as m where m.lexeme = mark
) as p
cross join lateral unnest(lexemes) as l
where l.positions[cardinality(l.positions)] > p.place;
end;

comment on function pgrag._snippet_behind(tsvector, text) is
'Lists the lexemes whose last position comes after the last of the lexeme mark.';
