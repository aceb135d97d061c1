-- Finds names that were joined from several words or numbers, and writes each as one word.
create or replace function pgrag._joined_names(search_config regconfig, normal text)
returns text
language plpgsql
immutable
parallel safe
strict
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    longest constant int := 255;
    longest_prefix constant int := 5;
    -- By hyphens and underscores, by letters meeting digits, and numbers with thousands separators or in hexadecimal.
    marked constant text := '[[:alnum:]]+(?:(?:[-_]+|-\n)[[:alnum:]]+)+'
        '|\m[[:alpha:]]+[0-9]+\M|\m[0-9]+[[:alpha:]]\M|\m0[xX][[:xdigit:]]+\M|\m[0-9]{1,3}(?:,[0-9]{3})+\M';
    camel constant text := '[[:alnum:]]*(?:[[:lower:]][[:upper:]]|[[:upper:]]{2}[[:lower:]]{2}|[[:lower:]][0-9]+[[:upper:]][[:lower:]])[[:alnum:]]*';
    numbered constant text := '\m[[:alpha:]]+ [0-9]{2,}\M(?![-_,][[:alnum:]])';
    names text;
    more text;
begin
    select pg_catalog.string_agg(
        case
            when pg_catalog.left(m.found[1], 2) in ('0x', '0X') then pg_catalog.substr(m.found[1], 3)
            else pg_catalog.translate(m.found[1], E'-_,\n', '')
        end, ' '
    ) into names
    from pg_catalog.regexp_matches(normal, marked, 'g') as m (found)
    where pg_catalog.length(m.found[1]) <= longest;
    if normal ~ '[[:lower:]][[:upper:]]|[[:upper:]]{2}[[:lower:]]{2}|[[:lower:]][0-9]+[[:upper:]][[:lower:]]' then
        select pg_catalog.string_agg(m.found[1], ' ') into more
        from pg_catalog.regexp_matches(normal, camel, 'g') as m (found)
        where pg_catalog.length(m.found[1]) <= longest;
        names := pg_catalog.concat_ws(' ', names, more);
    end if;
    -- A short word and a number after it, as if they were joined: "TS 999"; no stop word, as in "of 12".
    select pg_catalog.string_agg(pg_catalog.replace(m.found[1], ' ', ''), ' ') into more
    from pg_catalog.regexp_matches(normal, numbered, 'g') as m (found)
    where pg_catalog.strpos(m.found[1], ' ') <= longest_prefix + 1 and pg_catalog.length(m.found[1]) <= longest
        and pg_catalog.length(pg_catalog.to_tsvector(search_config, pg_catalog.split_part(m.found[1], ' ', 1))) > 0;
    return nullif(pg_catalog.concat_ws(' ', names, more), '');
end
$$;

comment on function pgrag._joined_names(regconfig, text) is
'The names in text from _normalise_text() that are joined by hyphens, underscores, case or digits, each as one word; spaces between.
Numbers lose thousands separators and the 0x of hexadecimal. A word of at most five letters that is no stop word counts as joined with a
number of two digits or more after it. At most 255 characters each. NULL where there is none, and for NULL.';
