-- Says how much of its bound a term gives to a chunk, by how often it stands there.
-- tf / (tf + k1 * (1 - b + b * length / average)). Robertson and Zaragoza 2009.
create or replace function pgrag._bm25_share(tf float8, length float8, average float8, k1 float8, b float8) returns float8
language sql immutable parallel safe security invoker
begin atomic
select tf / (tf + k1 * (1 - b) + length * (k1 * b / average));
end;

comment on function pgrag._bm25_share(float8, float8, float8, float8, float8) is
'Says how much of its bound a term gives to a chunk, above 0, at most 1. tf: times it stands there; length and average: lexemes of the chunk and of chunks on average.';
