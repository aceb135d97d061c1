-- Shows what the analyzer makes of a text, and why.
create or replace function pgrag.explain_analysis(content text, analyzer text default 'english')
returns table (lexeme text, positions int[], why text)
language plpgsql immutable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    longest constant int := 100000;
    search_config constant regconfig := pgrag._analyzer_config(coalesce(analyzer, ''));
    normal constant text := pgrag._normalise_text(content);
    -- Scripts that the analyzer writes as bigrams.
    cjk constant text := '^[\u3005-\u30ff\u3105-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U000323af]';
    folded text;
    last_word int;
    first_identifier int;
    as_written text[];
begin
    perform pgrag._check_range('length of content', coalesce(length(content), 0), 0, longest);
    if content is null then
        return;
    end if;
    -- analyze() puts the words first, then what was joined, and last the identifiers: each from the position after the one before.
    folded := pgrag._fold_letters(analyzer, normal);
    select a.last - i.last + 1, a.last - i.last - j.last into first_identifier, last_word
    from (
        select coalesce(max(p.place), 0) as last
        from unnest(pgrag.analyze(analyzer, content)) as w cross join lateral unnest(w.positions) as p (place)
    ) as a
    cross join (
        select coalesce(max(p.place), 0) as last
        from unnest(to_tsvector(search_config, pgrag._joined_names(search_config, folded collate "default"))) as w
        cross join lateral unnest(w.positions) as p (place)
    ) as j
    cross join (
        select coalesce(max(p.place), 0) as last
        from unnest(pgrag._identifier_lexemes(folded)) as w cross join lateral unnest(w.positions) as p (place)
    ) as i;
    as_written := tsvector_to_array(pgrag._fold_accents(analyzer, pgrag._word_lexemes(search_config, normal)));

    return query
    with run as (
        -- What is written without a space or a bracket between, and how many words the analyzer takes it for: the place of a mark
        -- after it says so, stop words included.
        select r.nth, pgrag._word_lexemes('simple', r.run || ' ' || 'zzqx') as lexemes
        from regexp_split_to_table(normal, '[[:space:](){}<>"“”„«»;,!?|]+|[\[\]]+|[.:''’]+(?=[[:space:]]|$)') with ordinality as r (run, nth)
        where r.run <> ''
    ),

    counted as (
        select r.nth, max(p.place) - 1 as words
        from run as r
        cross join lateral unnest(r.lexemes) as w
        cross join lateral unnest(w.positions) as p (place)
        group by r.nth
    ),

    spread as (
        select c.words, sum(c.words) over (order by c.nth) - c.words as before from counted as c
    ),

    -- The positions of words that stand in a name of several.
    joined as (
        select s.before + n.n as place from spread as s cross join lateral generate_series(1, s.words) as n (n) where s.words > 1
    ),

    explained as (
        select w.lexeme, p.place,
            case
                when p.place >= first_identifier then 'identifier kept whole'
                when p.place > last_word then 'joined name as one word'
                when w.lexeme ~ (cjk || '.$') then 'bigram'
                when w.lexeme ~ (cjk || '$') then 'single character'
                when w.lexeme not in (select unnest(as_written)) then 'word without its accents'
                when p.place in (select j.place from joined as j) then 'part of a joined name'
                else 'word'
            end as why
        from unnest(pgrag.analyze(analyzer, content)) as w
        cross join lateral unnest(w.positions) as p (place)
    )

    select e.lexeme, array_agg(e.place::int order by e.place), e.why
    from explained as e
    group by e.lexeme, e.why
    order by min(e.place), e.lexeme collate "C";
end
$$;

comment on function pgrag.explain_analysis(text, text) is
'Shows what the analyzer makes of a text, and why: a row per lexeme and reason, in the order of its first position; the same lexemes and positions as pgrag.analyze.
content: at most 100,000 characters; NULL gives no row. analyzer: a text search configuration. why: `word`; `word without its accents` (a second stem, for whoever leaves them out); `part of a joined name` (one of several words written as one); `joined name as one word`; `identifier kept whole`, with its punctuation; `bigram` and `single character` of Chinese, Japanese and Korean. Stop words have a position and no row.
For everybody who may search. Errors: RG001 too long, RG010 no such analyzer.';
