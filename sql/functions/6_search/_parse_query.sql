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
    -- Who types a query types few words beside a phrase; in a longer text quotation marks quote, or call a word by its name.
    max_typed_words constant int := 10;
    phrase_pattern constant text := '(?<![^[:space:](])(-?)"([^"]*)"(?![[:alnum:]])';
    exclusion_pattern constant text := '(?<![^[:space:]])-(\.?[[:alnum:]][^[:space:]]*)';
    prefix_pattern constant text := '(?<![^[:space:](])([[:alnum:]][^[:space:]*"''(){}\[\]<>\\|,;!?]*)\*(?![^[:space:]),.;:!?])';
    -- Operands that OR stands between: phrases, and words that begin with no minus.
    either_pattern constant text := '(?<![^[:space:](])((?:"[^"]*"|[^-"()[:space:]][^"()[:space:]]*)'
        '(?:(?:[[:space:]]+OR)+[[:space:]]+(?:"[^"]*"|[^-"()[:space:]][^"()[:space:]]*))+)(?![[:alnum:]"])';
    rest text := query;
    kept text;
    either tsquery;
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

    if query ~ '["“”„«»*]|(?:^|[[:space:]])-|OR|[\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]' then
        -- Marks that nobody sees must not keep a sign from being at the start of a word.
        rest := pg_catalog.regexp_replace(
            pg_catalog.translate(rest, E'“”„«»\u200b', '""""" '), '[\u200c-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]+', '', 'g'
        );
        rest := pg_catalog.replace(rest, ':*', '*');

        -- "a b" OR "c d": either must occur. Its words stay for what comes below; its phrases are done.
        if rest ~ '"[[:space:]]+OR[[:space:]]|[[:space:]]OR[[:space:]]+"' then
            for found in select m.found from pg_catalog.regexp_matches(rest, either_pattern, 'g') as m (found) loop
                continue when pg_catalog.strpos(found[1], '"') = 0;
                kept := '';
                either := null;
                for starts in
                    select m.found from pg_catalog.regexp_matches(found[1], '"([^"]*)"|([^"[:space:]]+)', 'g') as m (found)
                loop
                    continue when starts[2] = 'OR';
                    operators := operators + 1;
                    exit when operators > max_operators;
                    if starts[2] is null then
                        made := pgrag._query_phrase(config, starts[1]);
                        phrases := phrases || ' ' || starts[1];
                        if made is null then
                            problems := problems || pg_catalog.format('"%s" has no word to look for and was ignored', starts[1]);
                        end if;
                    else
                        kept := kept || ' ' || starts[2];
                        -- A word is OR-ed with what it is found by, as among plain words.
                        select pg_catalog.string_agg(
                            '''' || pg_catalog.replace(pg_catalog.replace(u.beginning, '\', '\\'), '''', '''''') || '''' || u.sign, ' | '
                        )::tsquery into made
                        from (
                            select l.beginning,
                                case when pg_catalog.length(l.beginning) = 1 and pg_catalog.ascii(l.beginning) >= 12288 then ':*' else '' end as sign
                            from pg_catalog.unnest(pg_catalog.tsvector_to_array(pgrag.analyze(config, starts[2]))) as l (beginning)
                            union all
                            select p.beginning, ':*'
                            from pg_catalog.unnest(pgrag._query_prefix(config, pg_catalog.rtrim(starts[2], '*'))) as p (beginning)
                            where starts[2] ~ '^[[:alnum:]]..*[^*]\*$|^[[:alnum:]][^*]\*$'
                        ) as u;
                    end if;
                    either := coalesce(either || made, made, either);
                end loop;
                exit when operators > max_operators;
                required := coalesce(required && either, either, required);
                rest := pg_catalog.replace(rest, found[1], kept || ' ');
            end loop;
        end if;
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
        if required is not null and pg_catalog.regexp_count(rest, '[^[:space:]]*[[:alnum:]][^[:space:]]*') > max_typed_words then
            required := null;
            problems := problems || pg_catalog.format(
                'beside more than %s words a phrase need not occur; its words count like the others', max_typed_words
            );
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
beginnings of lexemes in C order. required joins all "phrases", as alternatives where OR stands between
them (also of words: "a b" OR c), excluded any of -word, -"phrase" and -prefix*; each is NULL when the query has none, and required beside
more than 10 plain words: whoever writes so much writes a text, where quotation marks quote. Words of phrases are scored too, words of exclusions are not; exclusions alone give no terms. A minus excludes
only at the start of a word and before a letter, a digit or a quotation mark; OR between words alone says what is so anyway. Anything else is text.
A single CJK character is a prefix, since CJK is indexed as bigrams. problems says in words what was ignored.
RG010 for an unknown analyzer, RG011 above 100,000 characters, 1,000 different lexemes, or 100 phrases, exclusions and prefixes.
NULL arguments give a row of NULLs.';
