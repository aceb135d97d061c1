-- Finds the text search configuration that an analyzer's name stands for.
create or replace function pgrag._analyzer_config(config text)
returns regconfig
language plpgsql
immutable
parallel safe
strict
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    found_config pg_catalog.regconfig;
begin
    select c.oid into found_config
    from pg_catalog.pg_ts_config as c
    where c.cfgname = config and c.cfgnamespace = 'pg_catalog'::pg_catalog.regnamespace;
    if found_config is null then
        raise exception 'there is no analyzer "%"', config
            using errcode = 'RG010',
            hint = 'Use one of: ' || (
                select pg_catalog.string_agg(c.cfgname::text, ', ' order by c.cfgname)
                from pg_catalog.pg_ts_config as c
                where c.cfgnamespace = 'pg_catalog'::pg_catalog.regnamespace
            ) || '.';
    end if;
    return found_config;
end
$$;

comment on function pgrag._analyzer_config(text) is
'The text search configuration in pg_catalog that an analyzer''s name stands for.
Raises RG010, which lists the names this server knows, where there is none. Immutable as to_tsvector is: the built-in
configurations change with a major version of PostgreSQL only, after which the lexical index is analysed again. NULL gives NULL.';
