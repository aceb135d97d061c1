-- Finds identifiers whose punctuation means something (ts-999, 4.7.3, c++, .net, std::vector) and keeps each as one lexeme.
create or replace function pgrag._identifier_lexemes(content text)
returns tsvector
language plpgsql
immutable
parallel safe
strict
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    longest constant int := 255;
    most_positions constant int := 255; -- as many as a tsvector keeps
    lexemes text;
begin
    -- Regular expressions are few here: a session keeps 32, and compiles again what is pushed out.
    with run as materialized (
        select m.found[1] as run
        from pg_catalog.regexp_matches(content collate "default", '[[:alnum:]]+(?:[-_.:@&+#]+[[:alnum:]]+)+', 'g') as m (found)
        where pg_catalog.translate(m.found[1], '.:@&+#', '') <> m.found[1]
            or (pg_catalog.strpos(m.found[1], '-') > 0 and pg_catalog.translate(m.found[1], '0123456789', '') <> m.found[1])
    ),

    -- What stands between colons: the address after mailto, the number of a host with a port.
    part as (
        select run.run as part from run
        union all
        select p.part
        from run
        cross join lateral pg_catalog.string_to_table(run.run, ':') as p (part)
        where pg_catalog.strpos(run.run, ':') > 0 and (pg_catalog.strpos(p.part, '.') > 0 or pg_catalog.strpos(p.part, '@') > 0)
    ),

    path as materialized (
        -- The scheme of a URL says nothing.
        select case
            when pg_catalog.strpos(m.found[1], '://') > 0 then pg_catalog.substr(m.found[1], pg_catalog.strpos(m.found[1], '://') + 3)
            else m.found[1]
        end as path
        from pg_catalog.regexp_matches(
            content collate "default", '[[:alnum:]](?:[-[:alnum:]_.:@&+#~%=?]*[[:alnum:]])?:?(?:/+[-[:alnum:]_.:@&+#~%=?]*[[:alnum:]])+', 'g'
        ) as m (found)
        where pg_catalog.strpos(content, '/') > 0
    ),

    identifier as (
        select part.part as identifier from part
        union all
        -- Names with a dot on either side of an at sign.
        select p.part
        from part
        cross join lateral pg_catalog.string_to_table(pg_catalog.translate(part.part, '@&+#', '@@@@'), '@') as p (part)
        where pg_catalog.strpos(part.part, ':') = 0 and pg_catalog.strpos(p.part, '.') > 0 and p.part <> part.part
        union all
        -- A version or an address is found by how it begins, and without the v: v4.7.3 by 4.7.3 and 4.7.
        select pg_catalog.array_to_string(v.numbers[1:n.length], '.')
        from (
            select
                pg_catalog.string_to_array(pg_catalog.ltrim(part.part, 'vV'), '.') as numbers,
                (pg_catalog.left(part.part, 1) not in ('v', 'V'))::int as whole
            from part
            where part.part ~ '^[vV]?[0-9]+(?:\.[0-9]+)+$'
        ) as v
        cross join lateral pg_catalog.generate_series(2, least(pg_catalog.cardinality(v.numbers) - v.whole, 4)) as n (length)
        union all
        -- U.S.A. and AT&T; not e.g. and i.e.
        select pg_catalog.translate(run.run, '.&', '')
        from run
        where pg_catalog.length(run.run) <= 15 and pg_catalog.lower(run.run) <> pg_catalog.upper(run.run)
            and (
                pg_catalog.strpos(run.run, '&') > 0 and pg_catalog.length(run.run) <= 7
                or (pg_catalog.length(run.run) > 3 or run.run = pg_catalog.upper(run.run))
                and pg_catalog.length(run.run) = 2 * pg_catalog.length(pg_catalog.translate(run.run, '.', '')) - 1
            )
        union all
        select m.found[1]
        from pg_catalog.regexp_matches(content collate "default", '[[:alpha:]][[:alnum:]]{0,15}(?:\+\+(?!\+)|#(?![[:alnum:]#]))', 'g') as m (found)
        where pg_catalog.strpos(content, '++') > 0 or pg_catalog.strpos(content, '#') > 0
        union all
        select m.found[1]
        from pg_catalog.regexp_matches(
            content collate "default", '(?:^|[[:space:]([{,;"''`])(\.[[:alpha:]][[:alnum:]]{1,15})(?![[:alnum:]])', 'g'
        ) as m (found)
        union all
        -- More than two words with a stroke between.
        select path.path
        from path
        where pg_catalog.strpos(path.path, '/') > 0 and (
            pg_catalog.translate(path.path, '._:', '') <> path.path
            or pg_catalog.length(path.path) - pg_catalog.length(pg_catalog.replace(path.path, '/', '')) > 1
            or pg_catalog.translate(pg_catalog.substr(path.path, pg_catalog.strpos(path.path, '/')), '0123456789', '')
            <> pg_catalog.substr(path.path, pg_catalog.strpos(path.path, '/'))
        )
        union all
        -- A page without what is asked of it.
        select pg_catalog.split_part(pg_catalog.split_part(path.path, '#', 1), '?', 1)
        from path
        where pg_catalog.strpos(path.path, '?') > 0 or pg_catalog.strpos(path.path, '#') > 0
        union all
        -- I/O, TCP/IP: two short words.
        select pg_catalog.replace(path.path, '/', '')
        from path
        where pg_catalog.length(path.path) <= 9 and pg_catalog.translate(path.path, '-_.:@&+#~%=?', '') = path.path
            and pg_catalog.length(path.path) - pg_catalog.length(pg_catalog.replace(path.path, '/', '')) = 1
            and pg_catalog.strpos(path.path, '/') between 2 and 5 and pg_catalog.length(path.path) - pg_catalog.strpos(path.path, '/') <= 4
    )

    select pg_catalog.string_agg('''' || numbered.identifier || ''':' || numbered.place::text, ' ') into lexemes
    from (
        select lowered.identifier, pg_catalog.row_number() over (partition by lowered.identifier) as place
        from (select pg_catalog.lower(i.identifier) as identifier from identifier as i where pg_catalog.length(i.identifier) <= longest) as lowered
        where lowered.identifier <> ''
    ) as numbered
    where numbered.place <= most_positions;
    return coalesce(lexemes::tsvector, ''::tsvector);
end
$$;

comment on function pgrag._identifier_lexemes(text) is
'Identifiers whose punctuation means something, each as one lower-case lexeme with its punctuation.
Letters and digits joined by . : @ & + #, or by a hyphen where there is a digit (ts-999, 4.7.3, std::vector, ana@example.com), addresses,
hosts and ports'' numbers within them, versions without their v and by their first numbers, c++ and c#, .net, paths, and URLs without their
scheme and with and without a query. Abbreviations lose their dots and strokes (u.s.a, at&t, tcp/ip). At most 255 characters each; longer
ones are left to the words. Positions count from 1 for each and say how often it stands there. No identifier gives an empty vector,
NULL gives NULL.';
