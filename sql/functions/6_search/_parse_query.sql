-- Reads a query as people type it: words, "phrases", -exclusions and prefix*; everything else is text.
create or replace function pgrag._parse_query(
    config text,
    query text,
    out terms text[],
    out counts int[],
    out prefixes text[],
    out required tsquery,
    out excluded tsquery,
    out problems text[]
)
returns record
language plpgsql
immutable
parallel safe
strict
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    max_characters constant int := 100000;
    max_terms constant int := 1000;
    max_operators constant int := 100;
    phrase_pattern constant text := '(?<![^[:space:](])(-?)"([^"]*)"(?![[:alnum:]])';
    exclusion_pattern constant text := '(?<![^[:space:]])-(\.?[[:alnum:]][^[:space:]]*)';
    prefix_pattern constant text := '(?<![^[:space:](])([[:alnum:]][^[:space:]*"''(){}\[\]<>\\|,;!?]*)\*(?![^[:space:]),.;:!?])';
    rest text := query;
    phrases text := '';
    operators int := 0;
    found text[];
    starts text[];
    made tsquery;
    lexemes tsvector;
begin
    if pg_catalog.length(query) > max_characters then
        raise exception 'a query may have at most % characters, got %', max_characters, pg_catalog.length(query)
            using errcode = 'RG011', hint = 'Pass a shorter query.';
    end if;
    prefixes := '{}';
    problems := '{}';

    if query ~ '["“”„«»*]|(?:^|[[:space:]])-|OR' then
        rest := pg_catalog.translate(rest, '“”„«»', '"""""');
        for found in select m.found from pg_catalog.regexp_matches(rest, phrase_pattern, 'g') as m (found) loop
            operators := operators + 1;
            exit when operators > max_operators;
            made := pgrag._query_phrase(config, found[2]);
            if made is null then
                problems := problems || pg_catalog.format('"%s" has no word to look for and was ignored', found[2]);
            elsif found[1] = '-' then
                excluded := coalesce(excluded || made, made);
            else
                required := coalesce(required && made, made);
                phrases := phrases || ' ' || found[2];
            end if;
        end loop;
        rest := pg_catalog.regexp_replace(rest, phrase_pattern, ' ', 'g');
        if pg_catalog.strpos(rest, '"') > 0 and rest ~ '(?<![^[:space:](])-?"' then
            problems := problems || 'a quotation mark has no partner and was ignored'::text;
        end if;

        for found in select m.found from pg_catalog.regexp_matches(rest, exclusion_pattern, 'g') as m (found) loop
            operators := operators + 1;
            exit when operators > max_operators;
            if found[1] ~ '^[^*"''(){}\[\]<>\\|,;!?]+\*$' then
                select pg_catalog.string_agg('''' || p.beginning || ''':*', ' | ')::tsquery into made
                from pg_catalog.unnest(pgrag._query_prefix(config, pg_catalog.rtrim(found[1], '*'))) as p (beginning);
            else
                made := pgrag._query_phrase(config, found[1]);
            end if;
            if made is null then
                problems := problems || pg_catalog.format('-%s has no word to look for and was ignored', found[1]);
            else
                excluded := coalesce(excluded || made, made);
            end if;
        end loop;
        rest := pg_catalog.regexp_replace(rest, exclusion_pattern, ' ', 'g');

        for found in select m.found from pg_catalog.regexp_matches(rest, prefix_pattern, 'g') as m (found) loop
            operators := operators + 1;
            exit when operators > max_operators;
            starts := pgrag._query_prefix(config, found[1]);
            -- A single letter begins too much to be worth opening; a single CJK character begins few bigrams.
            if pg_catalog.length(found[1]) = 1 and pg_catalog.ascii(found[1]) < 12288 then
                problems := problems || pg_catalog.format('%s* is too short for a prefix and counts as a word', found[1]);
                phrases := phrases || ' ' || found[1];
            elsif pg_catalog.cardinality(starts) = 0 then
                problems := problems || pg_catalog.format('%s* has no word to look for and was ignored', found[1]);
            else
                prefixes := prefixes || starts;
            end if;
        end loop;
        rest := pg_catalog.regexp_replace(rest, prefix_pattern, ' ', 'g');
        rest := pg_catalog.regexp_replace(rest, '(?<![^[:space:](])OR(?![^[:space:])])', ' ', 'g');

        if operators > max_operators then
            raise exception 'a query may have at most % phrases, exclusions and prefixes', max_operators
                using errcode = 'RG011', hint = 'Pass fewer of them.';
        end if;
    end if;

    lexemes := pgrag.analyze(config, rest || phrases);
    if pg_catalog.length(lexemes) > max_terms then
        raise exception 'a query may have at most % different words, got %', max_terms, pg_catalog.length(lexemes)
            using errcode = 'RG011', hint = 'Pass a shorter query.';
    end if;
    select
        coalesce(pg_catalog.array_agg(u.lexeme order by u.place) filter (where not u.is_beginning), '{}'),
        coalesce(pg_catalog.array_agg(u.occurrences order by u.place) filter (where not u.is_beginning), '{}'),
        prefixes || coalesce(pg_catalog.array_agg(u.lexeme order by u.place) filter (where u.is_beginning), '{}')
    into terms, counts, prefixes
    from (
        select
            l.lexeme,
            l.positions[1] as place,
            pg_catalog.cardinality(l.positions) as occurrences,
            pg_catalog.length(l.lexeme) = 1 and pg_catalog.ascii(l.lexeme) >= 12288 as is_beginning
        from pg_catalog.unnest(lexemes) as l
    ) as u;
    prefixes := array(select distinct p.beginning collate "C" from pg_catalog.unnest(prefixes) as p (beginning) order by 1);
end
$$;

comment on function pgrag._parse_query(text, text) is
'One row that says what a query looks for: terms to score, prefixes to expand, what is required and what is excluded.
terms are distinct lexemes in order of first use, counts (1 to 255) how often each stands in the query, prefixes the lower-case
beginnings of lexemes in C order. required joins all "phrases", excluded any of -word, -"phrase" and -prefix*; each is NULL when the
query has none. Words of phrases are scored too, words of exclusions are not; exclusions alone give no terms. A minus excludes
only at the start of a word and before a letter, a digit or a quotation mark; OR between words says what is so anyway. Anything else is text.
A single CJK character is a prefix, since CJK is indexed as bigrams. problems says in words what was ignored.
RG010 for an unknown analyzer, RG011 above 100,000 characters, 1,000 different lexemes, or 100 phrases, exclusions and prefixes.
NULL arguments give a row of NULLs.';
