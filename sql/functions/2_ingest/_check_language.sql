-- Refuses what is no tag of a language.
create or replace function pgrag._check_language(language text) returns text
language plpgsql stable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if language is null or language ~* '^([a-z]{2,3}|[ix](?=-))(-[a-z0-9]{1,8})*$' or exists (
        select from pg_ts_config as c
        where c.cfgname = lower(language) and c.cfgnamespace = 'pg_catalog'::regnamespace
    ) then
        return language;
    end if;
    raise exception 'language must be a BCP 47 tag, got "%"', left(language, 100)
        using errcode = 'RG001', hint = 'Pass one such as de, pt-BR or zh-Hant; NULL where the language is not known.';
end
$$;

comment on function pgrag._check_language(text) is
'Refuses what is no tag of a language, and returns the rest unchanged: a language of two or three letters and perhaps more after hyphens, as in BCP 47, or the name of a text search configuration. NULL gives NULL. Error RG001.';
