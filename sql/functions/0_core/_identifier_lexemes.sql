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
    lexemes text;
begin
    with run as materialized (
        select m.found[1] as run
        from pg_catalog.regexp_matches(content, '[[:alnum:]]+(?:[-_.:@&+#]+[[:alnum:]]+)+', 'g') as m (found)
        where m.found[1] ~ '[.:@&+#]|[0-9].*-|-.*[0-9]'
    ),

    identifier as (
        select run.run as identifier
        from run
        union all
        -- The host of an address and the number of a host with a port are looked for on their own.
        select part.part
        from run
        cross join lateral pg_catalog.regexp_split_to_table(run.run, '[:@&+#]+') as part (part)
        where run.run ~ '[:@&+#]' and part.part ~ '\.'
        union all
        select m.found[1]
        from pg_catalog.regexp_matches(content, '[[:alpha:]][[:alnum:]]{0,15}(?:\+\+(?!\+)|#(?![[:alnum:]#]))', 'g') as m (found)
        where content ~ '[[:alnum:]](?:\+\+|#)'
        union all
        select m.found[1]
        from pg_catalog.regexp_matches(content, '(?<![^[:space:]([{,;"''`])(\.[[:alpha:]][[:alnum:]]{1,15})(?![[:alnum:]])', 'g') as m (found)
        where content ~ '(?:^|[^[:alnum:].])\.[[:alpha:]]'
        union all
        select m.found[1]
        from pg_catalog.regexp_matches(
            content, '[[:alnum:]](?:[-[:alnum:]_.:@&+#~%=?]*[[:alnum:]])?:?(?:/+[-[:alnum:]_.:@&+#~%=?]*[[:alnum:]])+', 'g'
        ) as m (found)
        where content ~ '[[:alnum:]:]/' and m.found[1] ~ '/.*[/._:0-9]|[._:].*/'
    )

    select pg_catalog.string_agg('''' || pg_catalog.lower(numbered.identifier) || ''':' || numbered.place::text, ' ') into lexemes
    from (
        select i.identifier, pg_catalog.row_number() over () as place
        from identifier as i
        where pg_catalog.length(i.identifier) <= longest
    ) as numbered;
    return coalesce(lexemes::tsvector, ''::tsvector);
end
$$;

comment on function pgrag._identifier_lexemes(text) is
'Identifiers whose punctuation means something, each as one lower-case lexeme with its punctuation.
Letters and digits joined by . : @ & + #, or by a hyphen where there is a digit (ts-999, 4.7.3, std::vector, ana@example.com), hosts
within them, c++ and c#, .net, paths and URLs. At most 255 characters each; longer ones are left to the words. Positions count from 1 in
no particular order and say how often each stands there. No identifier gives an empty vector, NULL gives NULL.';
