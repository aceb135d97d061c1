-- Estimates the memory that pgvector needs to build the approximate index of a space.
-- hnsw: 3 MB + n * (value + 200 + 32 * m), read off its notice at 384 and 768 numbers with m of 8, 16 and 32; within 1 % above it.
-- ivfflat: what its k-means asks for (Elkan 2003): samples, centres, bounds and distances between the centres.
create or replace function pgrag._build_bytes(
    vectors bigint, dimension int, "precision" text, index_kind text, index_options jsonb
) returns bigint
language plpgsql immutable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    value bigint := 8 + case "precision" when 'vector' then 4 * dimension when 'halfvec' then 2 * dimension else (dimension + 7) / 8 end;
    m bigint := coalesce((index_options ->> 'm')::int, 16);
    lists bigint := coalesce((index_options ->> 'lists')::int, 100);
    samples bigint := greatest(10000, 50 * lists);
    drawn bigint := least(samples, vectors);
begin
    return case index_kind
        when 'hnsw' then 3 * 1048576 + vectors * (value + 200 + 32 * m)
        when 'ivfflat' then
            samples * value + 2 * lists * value + 4 * lists * dimension
            + 4 * drawn * lists + 8 * drawn + 4 * lists * lists + 12 * lists
        else 0
    end;
end
$$;

comment on function pgrag._build_bytes(bigint, int, text, text, jsonb) is
'Estimates the memory that pgvector needs to build the approximate index of a space, in bytes; for pgrag._begin_build. 0 for `none`.
With less, hnsw goes on on disk, many times slower, and ivfflat refuses.';
