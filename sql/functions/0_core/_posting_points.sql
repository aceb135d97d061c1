-- Says what a posting gives to a chunk's score, in whole points.
create or replace function pgrag._posting_points(entry bigint, most float8, average float8, k1 float8, b float8) returns float8
language sql immutable parallel safe security invoker
begin atomic
select round(most * pgrag._bm25_share(((entry >> 15) & 255)::float8, (entry & 32767)::float8, average, k1, b));
end;

comment on function pgrag._posting_points(bigint, float8, float8, float8, float8) is
'Says what a posting gives to a chunk''s score, in whole points: the term''s most (in points, negative in a negative run) times its share. Whole numbers in a float add up exactly, in any order, below 2 ^ 53: so no bit of a score depends on the order or the history of the postings.';
