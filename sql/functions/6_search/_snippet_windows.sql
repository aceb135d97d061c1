-- Chooses the parts of a text that hold the most of what a query looks for.
create or replace function pgrag._snippet_windows(
    firsts int[], lasts int[], items int[], weights int[], max_characters int, max_fragments int
) returns table (first int, last int)
language plpgsql immutable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    total constant int := coalesce(cardinality(firsts), 0);
    worth int[]; -- of each item; 0 once a window has it
    held int[]; -- how often each item is in the window
    size int;
    score int;
    best_score int;
    best_first int;
    best_last int;
    best_length int;
    gained int;
    single_score int;
    right_end int;
    made int := 0;
    found_firsts int[] := '{}';
    found_lasts int[] := '{}';
    everything int;
begin
    if total = 0 then
        return;
    end if;
    worth := array_fill(0, array[(select max(i) from unnest(items) as i)]);
    for n in 1..total loop
        worth[items[n]] := weights[n];
    end loop;
    everything := (select sum(w) from unnest(worth) as w);
    gained := 0;
    -- First one window of the full size; then, if that misses something, smaller ones.
    size := max_characters;
    while made < max_fragments and gained < everything loop
        held := array_fill(0, array[cardinality(worth)]);
        score := 0;
        best_score := 0;
        right_end := 0;
        for n in 1..total loop
            while right_end < total and lasts[right_end + 1] < firsts[n] + size loop
                right_end := right_end + 1;
                if held[items[right_end]] = 0 then
                    score := score + worth[items[right_end]];
                end if;
                held[items[right_end]] := held[items[right_end]] + 1;
            end loop;
            -- What is longer than a window is shown from its beginning.
            if right_end < n then
                right_end := n;
                held[items[n]] := held[items[n]] + 1;
                score := worth[items[n]];
            end if;
            if score > best_score or (score = best_score and score > 0 and lasts[right_end] - firsts[n] < best_length) then
                best_score := score;
                best_first := n;
                best_last := right_end;
                best_length := lasts[right_end] - firsts[n];
            end if;
            held[items[n]] := held[items[n]] - 1;
            if held[items[n]] = 0 then
                score := score - worth[items[n]];
            end if;
        end loop;
        exit when best_score = 0;
        if single_score is null then
            first := firsts[best_first];
            last := least(lasts[best_last], first + size - 1);
            single_score := best_score;
            exit when best_score = everything or max_fragments = 1;
            size := greatest(max_characters / max_fragments, 1);
            continue;
        end if;
        made := made + 1;
        gained := gained + best_score;
        found_firsts := found_firsts || firsts[best_first];
        found_lasts := found_lasts || least(lasts[best_last], firsts[best_first] + size - 1);
        for n in best_first..best_last loop
            worth[items[n]] := 0;
        end loop;
    end loop;
    if gained <= single_score then
        return next;
        return;
    end if;
    return query
    select u.first, u.last from unnest(found_firsts, found_lasts) as u (first, last) order by u.first;
end
$$;

comment on function pgrag._snippet_windows(int[], int[], int[], int[], int, int) is
'Chooses the parts of a text that hold the most of what a query looks for, in the order of the text: from the first to the last match of each.
firsts must ascend; an item counts once, by its weight. One window of max_characters where that holds as much as several, else at most max_fragments that share them; the shortest of equal ones, then the first. Without a match no row.';
