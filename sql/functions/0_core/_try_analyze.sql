-- Analyses a text as analyze() does, and gives NULL where one chunk can't hold the result.
create or replace function pgrag._try_analyze(config text, content text) returns tsvector
language plpgsql immutable parallel safe strict security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    return pgrag.analyze(config, content);
exception when sqlstate 'RG013' then
    return null;
end
$$;

comment on function pgrag._try_analyze(text, text) is
'Analyses a text as pgrag.analyze does, and gives NULL where one chunk can''t hold the result, so that one chunk doesn''t stop a job over many.';
