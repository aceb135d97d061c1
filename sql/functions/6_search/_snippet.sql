-- Writes the parts of a text that a parsed query looks for, with the matches marked.
create or replace function pgrag._snippet(
    content text,
    analyzer text,
    terms text[],
    counts int[],
    prefixes text[],
    required tsquery,
    max_characters int,
    max_fragments int,
    start_mark text,
    stop_mark text,
    escape_html boolean
) returns text
language plpgsql immutable parallel safe security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan -- planning takes as long as a short text does
as $$
declare
    -- How far an end may move so that no word is cut.
    slack constant int := 25;
    -- A fragment of fewer characters shows nothing around its match.
    shortest constant int := 20;
    -- Matches with nothing but these between, at most three, are marked as one.
    joiners constant text := E'-_./:@&+#\\‐‑‒−–⁄－＿．：＠＆＋＃／';
    total constant int := length(content);
    words text[] := terms;
    firsts int[];
    lasts int[];
    items int[];
    weights int[];
    opened int[] := '{}';
    closed int[] := '{}';
    budget int;
    part text;
    letters text[];
    shown text[];
    nearest int := 1;
    mark_first int;
    mark_last int;
    written text := '';
    before int;
    place int;
    at int;
    is_sentence boolean;
    frame record;
begin
    if required is not null then
        -- Words that stand only in phrases of several are marked with these alone.
        words := array(
            select w.term from unnest(terms, counts) as w (term, n)
            where w.n > (
                select count(*) from (
                    select p.lexeme, count(*) over (partition by p.phrase) as words from pgrag._snippet_phrases(required) as p
                ) as p
                where p.lexeme = w.term and p.words > 1
            )
            order by w.term
        );
    end if;
    select
        array_agg(m.first order by m.first, m.last, m.item), array_agg(m.last order by m.first, m.last, m.item),
        array_agg(m.item order by m.first, m.last, m.item), array_agg(m.weight order by m.first, m.last, m.item)
    into firsts, lasts, items, weights
    from pgrag._snippet_matches(content, analyzer, words, prefixes, required) as m;

    if total <= max_characters then
        opened := array[1];
        closed := array[total];
    else
        select array_agg(w.first order by w.first), array_agg(w.last order by w.first) into opened, closed
        from pgrag._snippet_windows(
            firsts, lasts, items, weights, max_characters, greatest(least(max_fragments, max_characters / shortest), 1)
        ) as w;
        opened := coalesce(opened, array[1]);
        closed := coalesce(closed, array[1]);
        budget := max_characters / cardinality(opened);
        for n in 1..cardinality(opened) loop
            -- From the beginning of the sentence, if it isn't far; else with a third of what is left before the match.
            place := greatest(opened[n] - (budget - (closed[n] - opened[n] + 1)) / 2, 1);
            before := opened[n] - place;
            at := length(substring(substr(content, place, before) from '^.*(?:[.!?][[:space:]]+|[。！？]|\n[[:space:]]*)'));
            is_sentence := at is not null or place = 1;
            if at is not null then
                place := place + at;
            elsif place > 1 then
                place := opened[n] - before * 2 / 3;
                at := length(substring(substr(content, place, least(slack, opened[n] - place)) from '^[^[:space:]]*[[:space:]]+'));
                place := place + coalesce(at, 0);
            end if;
            at := place + budget - 1;
            if at >= total then
                -- The text ends here, so there is more room before: for whole sentences, else for words.
                at := total;
                before := greatest(total - budget + 1, 1);
                if before = 1 then
                    place := 1;
                elsif before < place then
                    part := substr(content, before, place - before);
                    place := before + coalesce(
                        length(substring(part from '^.*?(?:[.!?](?=[[:space:]])|[。！？]|\n)')),
                        case when is_sentence then place - before else length(substring(left(part, slack) from '^[^[:space:]]*')) end
                    );
                end if;
                place := place + coalesce(length(substring(substr(content, place, opened[n] - place) from '^[[:space:]]+')), 0);
            elsif substr(content, at + 1, 1) !~ '[[:space:]]' then
                part := substr(content, greatest(at - slack, closed[n]) + 1, at - greatest(at - slack, closed[n]));
                at := at - coalesce(length(substring(part from '[[:space:]][^[:space:]]*$')), 0);
            end if;
            opened[n] := place;
            closed[n] := at;
        end loop;
    end if;

    for frame in
        -- Fragments that touch are one.
        select min(u.first) as first, max(u.last) as last
        from (
            select f.first, f.last, sum(f.is_new) over (order by f.first) as nth
            from (
                select u.first, u.last, case when u.first <= lag(u.last) over (order by u.first) + 1 then 0 else 1 end as is_new
                from unnest(opened, closed) as u (first, last)
            ) as f
        ) as u
        group by u.nth
        order by 1
    loop
        part := substr(content, frame.first, frame.last - frame.first + 1);
        if total > max_characters then
            part := rtrim(part, E' \t\r\n');
        end if;
        written := written || case
            when written <> '' then ' … '
            when frame.first > 1 and left(content, frame.first - 1) ~ '[^[:space:]]' then '…'
            else ''
        end;
        -- Cut once into characters, so that each match costs the same, wherever it stands.
        letters := string_to_array(part, null);
        if escape_html and part ~ '[&<>"'']' then
            shown := array(
                select case when l.letter in ('&', '<', '>', '"', '''') then pgrag._escape_html(l.letter) else l.letter end
                from unnest(letters) with ordinality as l (letter, place)
                order by l.place
            );
        else
            shown := letters;
        end if;
        mark_last := null;
        for n in nearest..coalesce(cardinality(firsts), 0) loop
            if lasts[n] < frame.first then
                -- What ends before this fragment ends before those behind it.
                if mark_last is null then
                    nearest := n + 1;
                end if;
                continue;
            end if;
            mark_first := greatest(firsts[n] - frame.first + 1, 1);
            exit when mark_first > cardinality(letters);
            if mark_last is not null and mark_first <= mark_last + 4 then
                at := mark_last + 1;
                while at < mark_first and strpos(joiners, letters[at]) > 0 loop
                    at := at + 1;
                end loop;
            else
                at := 0;
            end if;
            if at >= mark_first then
                mark_last := greatest(mark_last, lasts[n] - frame.first + 1);
            else
                if mark_last is not null then
                    shown[mark_last] := shown[mark_last] || stop_mark;
                end if;
                shown[mark_first] := start_mark || shown[mark_first];
                mark_last := lasts[n] - frame.first + 1;
            end if;
        end loop;
        if mark_last is not null then
            mark_last := least(mark_last, cardinality(letters));
            shown[mark_last] := shown[mark_last] || stop_mark;
        end if;
        written := written || array_to_string(shown, '');
        place := frame.first + length(part) - 1;
    end loop;
    return written || case when place < total and total > max_characters and substr(content, place + 1) ~ '[^[:space:]]' then '…' else '' end;
end
$$;

comment on function pgrag._snippet(text, text, text[], int[], text[], tsquery, int, int, text, text, boolean) is
'Writes the parts of a text that a parsed query looks for, with the matches marked: the work of pgrag.snippet.
terms, counts, prefixes and required: of _parse_query by the same analyzer. The other arguments are those of pgrag.snippet.';
