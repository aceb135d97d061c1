-- Writes in SQL how far the vectors of a space are from a query, and how its approximate index orders them.
create or replace function pgrag._nearness(of_space pgrag.space, out distance text, out index_order text) returns record
language plpgsql stable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    place text := pgrag._vector_schema();
begin
    distance := format('e.embedding operator(%1$s.<=>) $1%2$s', place,
        case of_space."precision" when 'vector' then format('::%s.vector', place) else '' end);
    index_order := case of_space."precision"
        when 'bit' then format('e.code operator(%s.<~>) $2::bit(%s)', place, of_space.dimension)
        else distance
    end;
end
$$;

comment on function pgrag._nearness(pgrag.space) is
'Writes in SQL how far the vectors of a space are from a query, the cosine distance, and how its approximate index orders them. `e` is the table of the vectors; $1 the query, halfvec; $2 its code, see pgrag._code, which only the order of a space of precision bit reads.';
