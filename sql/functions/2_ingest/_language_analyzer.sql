-- Finds the text search configuration that a language's tag stands for.
create or replace function pgrag._language_analyzer(language text) returns text
language plpgsql immutable parallel safe strict security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    -- The language itself, without script, region and variants: two or three letters, or a configuration's name.
    main constant text := substring(lower(btrim(language)) from '^[a-z]+(?=[-_]|$)');
    named text;
begin
    named := case main
        when 'en' then 'english' when 'eng' then 'english'
        when 'de' then 'german' when 'deu' then 'german' when 'ger' then 'german'
        when 'fr' then 'french' when 'fra' then 'french' when 'fre' then 'french'
        when 'es' then 'spanish' when 'spa' then 'spanish'
        when 'pt' then 'portuguese' when 'por' then 'portuguese'
        when 'it' then 'italian' when 'ita' then 'italian'
        when 'nl' then 'dutch' when 'nld' then 'dutch' when 'dut' then 'dutch'
        when 'ru' then 'russian' when 'rus' then 'russian'
        when 'ar' then 'arabic' when 'ara' then 'arabic' when 'arb' then 'arabic'
        when 'hy' then 'armenian' when 'hye' then 'armenian' when 'arm' then 'armenian'
        when 'eu' then 'basque' when 'eus' then 'basque' when 'baq' then 'basque'
        when 'ca' then 'catalan' when 'cat' then 'catalan'
        when 'da' then 'danish' when 'dan' then 'danish'
        when 'fi' then 'finnish' when 'fin' then 'finnish'
        when 'el' then 'greek' when 'ell' then 'greek' when 'gre' then 'greek'
        when 'hi' then 'hindi' when 'hin' then 'hindi'
        when 'hu' then 'hungarian' when 'hun' then 'hungarian'
        when 'id' then 'indonesian' when 'ind' then 'indonesian' when 'in' then 'indonesian'
        when 'ga' then 'irish' when 'gle' then 'irish'
        when 'lt' then 'lithuanian' when 'lit' then 'lithuanian'
        when 'ne' then 'nepali' when 'nep' then 'nepali' when 'npi' then 'nepali'
        when 'no' then 'norwegian' when 'nor' then 'norwegian' when 'nb' then 'norwegian' when 'nob' then 'norwegian'
        when 'nn' then 'norwegian' when 'nno' then 'norwegian'
        when 'ro' then 'romanian' when 'ron' then 'romanian' when 'rum' then 'romanian' when 'mo' then 'romanian'
        when 'sr' then 'serbian' when 'srp' then 'serbian'
        when 'sv' then 'swedish' when 'swe' then 'swedish'
        when 'ta' then 'tamil' when 'tam' then 'tamil'
        when 'tr' then 'turkish' when 'tur' then 'turkish'
        when 'yi' then 'yiddish' when 'yid' then 'yiddish' when 'ji' then 'yiddish'
        -- No tag of a language: undetermined, several, private.
        when 'und' then '' when 'mul' then '' when 'x' then ''
    end;
    if named is not null then
        return nullif(named, '');
    end if;
    -- Configurations that only some versions of PostgreSQL have, and those that are named themselves.
    named := case main
        when 'et' then 'estonian' when 'est' then 'estonian' when 'ekk' then 'estonian'
        when 'eo' then 'esperanto' when 'epo' then 'esperanto'
        when 'pl' then 'polish' when 'pol' then 'polish'
        else main
    end;
    if exists (
        select from pg_ts_config as c
        where c.cfgname = named and c.cfgnamespace = 'pg_catalog'::regnamespace
    ) then
        return named;
    end if;
    return case when length(main) in (2, 3) or main = 'i' then 'simple' end;
end
$$;

comment on function pgrag._language_analyzer(text) is
'Finds the text search configuration that a language''s tag stands for, whatever its script, region and case: "de", "de-AT" and "german" give german.
A language without a configuration on this server, such as "ja", gives simple. NULL where the collection''s analyzer shall do: for NULL, for "und", "mul" and private tags, and for what is no tag at all. Immutable as pgrag._analyzer_config is.';
