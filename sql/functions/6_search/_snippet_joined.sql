-- Finds the joined names and identifiers in runs of text that a query looks for as a whole.
create or replace function pgrag._snippet_joined(runs text[], analyzer text, words text[], prefixes text[])
returns table (run text, first int, last int, item int)
language plpgsql immutable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    -- Each takes a millisecond to find; the words in the rest are found all the same.
    most_names constant int := 300;
    batch_characters constant int := 2000;
    -- A word that comes after all others: what the analyzer puts behind it was joined, or is an identifier.
    mark constant text := 'zzqx';
    batch record;
    name record;
    behind text[];
    -- A stem may differ from its word, but not where it begins; where letters beyond ASCII are about, it may.
    beginnings constant text := (
        select string_agg(distinct regexp_replace(left(u.lexeme, 3), '([^[:alnum:]])', '\\\1', 'g'), '|')
        from unnest(words || prefixes) as u (lexeme)
    );
    is_ascii constant boolean := octet_length(array_to_string(words || prefixes, '')) = length(array_to_string(words || prefixes, ''));
    made int := 0;
    cuts int[];
    opened int[];
    low int;
    high int;
    middle int;
    offset_characters int;
begin
    for batch in
        select array_agg(b.run) as runs
        from (
            select r.run, sum(length(r.run)) over (rows unbounded preceding) / batch_characters as nth
            from unnest(runs) as r (run)
            where not is_ascii or octet_length(r.run) > length(r.run) or lower(r.run) ~ beginnings
                or lower(regexp_replace(r.run, '[^[:alnum:]]', '', 'g')) ~ beginnings
        ) as b
        group by b.nth
    loop
        -- Few batches hold what is looked for, so few runs are analysed one by one.
        behind := array(
            select b.lexeme
            from pgrag._snippet_behind(pgrag.analyze(analyzer, array_to_string(batch.runs, ' ') || ' ' || mark), mark) as b (lexeme)
            where b.lexeme = any(words) or exists (select from unnest(prefixes) as p (prefix) where starts_with(b.lexeme, p.prefix))
        );
        continue when cardinality(behind) = 0;
        for name in
            select c.run, j.lexeme, array(
                select w.item::int from unnest(words) with ordinality as w (lexeme, item) where w.lexeme = j.lexeme
                union all
                select (cardinality(words) + p.item)::int from unnest(prefixes) with ordinality as p (prefix, item)
                where starts_with(j.lexeme, p.prefix)
            ) as items
            from (
                select r.run, pgrag.analyze(analyzer, r.run || ' ' || mark) as lexemes
                from unnest(batch.runs) as r (run)
            ) as c
            cross join lateral pgrag._snippet_behind(c.lexemes, mark) as j (lexeme)
            where j.lexeme = any(behind)
        loop
            made := made + 1;
            exit when made > most_names;
            -- Where a name may begin and end: at a word, with a dot before it, or with the signs of C++ and C# behind it.
            select array_agg(p.first), array_agg(p.last) into opened, cuts from pgrag._snippet_pieces(name.run) as p;
            cuts := array(
                select c.cut from unnest(cuts) as c (cut)
                union
                select c.cut + length(substring(substr(name.run, c.cut + 1) from '^(?:\+\+|#)'))
                from unnest(cuts) as c (cut)
                where substr(name.run, c.cut + 1) ~ '^(?:\+\+|#)'
                order by 1
            );
            opened := array(
                select o.cut from unnest(opened) as o (cut)
                union
                select o.cut - 1 from unnest(opened) as o (cut) where o.cut > 1 and substr(name.run, o.cut - 1, 1) = '.'
                order by 1
            );
            offset_characters := 0;
            loop
                -- The first end at which the name is there.
                cuts := array(select c.cut from unnest(cuts) as c (cut) where c.cut > offset_characters order by 1);
                exit when cardinality(cuts) = 0
                    or (offset_characters > 0 and not pgrag._snippet_holds(substr(name.run, offset_characters + 1), analyzer, name.lexeme));
                low := 1;
                high := cardinality(cuts);
                while low < high loop
                    middle := (low + high) / 2;
                    if pgrag._snippet_holds(substr(name.run, offset_characters + 1, cuts[middle] - offset_characters), analyzer, name.lexeme) then
                        high := middle;
                    else
                        low := middle + 1;
                    end if;
                end loop;
                last := cuts[low];
                -- The last beginning from which it still is.
                low := 1;
                high := cardinality(opened);
                while low < high loop
                    middle := (low + high + 1) / 2;
                    if opened[middle] <= last
                        and pgrag._snippet_holds(substr(name.run, opened[middle], last - opened[middle] + 1), analyzer, name.lexeme)
                    then
                        low := middle;
                    else
                        high := middle - 1;
                    end if;
                end loop;
                first := opened[low];
                run := name.run;
                foreach item in array name.items loop
                    return next;
                end loop;
                offset_characters := last;
            end loop;
        end loop;
    end loop;
end
$$;

comment on function pgrag._snippet_joined(text[], text, text[], text[]) is
'Finds the joined names and identifiers that a query looks for as a whole ("ts999", "getuserbyid", "c++") in runs of text without a space.
first and last: characters of the run, from 1, inclusive; the shortest stretch that the analyzer makes the lexeme of. item: index in words, or of a prefix after all words. The first 300 names are looked at.';
