-- Bounds what a term can give to a chunk: its inverse document frequency times (k1 + 1).
-- idf = ln(1 + (N - df + 0.5) / (df + 0.5)), as in Lucene.
create or replace function pgrag._bm25_most(chunks float8, df float8, k1 float8) returns float8
language sql immutable parallel safe security invoker
begin atomic
select ln(1 + (chunks - df + 0.5) / (df + 0.5)) * (k1 + 1);
end;

comment on function pgrag._bm25_most(float8, float8, float8) is
'Bounds what a term can give to a chunk: idf * (k1 + 1), above 0. chunks: N; df: chunks that hold the term.';
