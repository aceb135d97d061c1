-- tokens = greatest(1.1 * units, characters / 4 + (octets - characters) * 3 / 8), rounded up; fitted to BERT's WordPiece.
create or replace function pgrag._estimate_from_counts(units int, characters int, octets int)
returns int
language sql
immutable
parallel safe
strict
security invoker
begin atomic
    select ceil(greatest(1.1::float8 * units, characters * 0.25::float8 + (octets - characters) * 0.375::float8))::int;
end;

comment on function pgrag._estimate_from_counts(int, int, int) is
'How many tokens a text with these counts is, as an estimate.
units are words plus punctuation marks. The three counts of two texts add up, so a chunk''s estimate needs no second look at its text.
NULL gives NULL.';
