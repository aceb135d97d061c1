-- Refuses a chunk budget that no useful chunk could keep.
create or replace function pgrag._chunk_budget(max_tokens int)
returns int
language plpgsql
immutable
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if max_tokens is null or max_tokens not between 16 and 8192 then
        raise exception 'a chunk budget must be between 16 and 8192 tokens, got %', coalesce(max_tokens::text, 'NULL')
            using errcode = 'RG012', hint = 'Pass 200 to 400 unless your model says otherwise.';
    end if;
    return max_tokens;
end
$$;

comment on function pgrag._chunk_budget(int) is
'The budget itself, 16 to 8192 tokens; RG012 outside that, and for NULL.';
