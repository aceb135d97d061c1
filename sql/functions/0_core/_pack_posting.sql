-- Packs a posting into one number: chunk_id << 23 | tf << 15 | length.
create or replace function pgrag._pack_posting(chunk_id bigint, tf int, length int) returns bigint
language sql immutable parallel safe security invoker
begin atomic
select (chunk_id << 23) | (tf::bigint << 15) | length::bigint;
end;

comment on function pgrag._pack_posting(bigint, int, int) is
'Packs a posting into one number, so that a run is one array, in the order of its chunks: chunk_id << 23 | tf << 15 | length.
chunk_id: 1 to 2 ^ 40 - 1; tf: 1 to 255; length: 1 to 32,767.';
