-- Bounds the share that a term gives to any chunk of a run.
create or replace function pgrag._bm25_bound(max_tf float8, min_ratio float8, average float8, k1 float8, b float8) returns float8
language sql immutable parallel safe security invoker
begin atomic
select 1 / (1 + k1 * ((1 - b) / max_tf + b * min_ratio / average));
end;

comment on function pgrag._bm25_bound(float8, float8, float8, float8, float8) is
'Bounds the share (pgrag._bm25_share) that a term gives to any chunk of a run: max_tf is its highest term frequency, min_ratio its smallest length / tf.';
