-- Chooses greedily, best first, which candidates a budget is spent on.
create or replace function pgrag._choose_passages(
    contents text[], costs int[], document_ids bigint[], starts int[], ends int[], budget_tokens int
) returns table (rank int, number int, left_out text)
language plpgsql immutable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    plain text[] := '{}';
    -- An array a text, written as one text: arrays of arrays must all be equally long.
    words text[] := '{}';
    found text[];
    counts int[] := '{}';
    signatures varbit[] := '{}';
    kept int[] := '{}';
    kept_rank int;
    spent bigint := 0;
begin
    for i in 1 .. coalesce(cardinality(contents), 0) loop
        plain := plain || lower(btrim(regexp_replace(pgrag._visible_text(contents[i]), '[[:space:]]+', ' ', 'g')));
        found := pgrag._words(pgrag._visible_text(contents[i]));
        words := words || array_to_string(found, ' ');
        counts := counts || cardinality(found);
        signatures := signatures || pgrag._word_signature(found);
        rank := i;
        number := null;
        left_out := null;
        for j in 1 .. cardinality(kept) loop
            kept_rank := kept[j];
            left_out := case
                when plain[i] = plain[kept_rank] then 'same text as P' || j
                when document_ids[i] = document_ids[kept_rank]
                    and 2 * (least(ends[i], ends[kept_rank]) - greatest(starts[i], starts[kept_rank]))
                    >= greatest(1, least(ends[i] - starts[i], ends[kept_rank] - starts[kept_rank]))
                    then 'overlaps P' || j
                -- Nine tenths of all words in both: at most a ninth of the smaller text's words in one only.
                when 9 * bit_count(signatures[i] # signatures[kept_rank]) > least(counts[i], counts[kept_rank]) then null
                when pgrag._same_words(string_to_array(words[i], ' '), string_to_array(words[kept_rank], ' '))
                    then 'nearly the same text as P' || j
            end;
            exit when left_out is not null;
        end loop;
        if left_out is null and spent + costs[i] > budget_tokens then
            left_out := 'over the budget';
        elsif left_out is null then
            spent := spent + costs[i];
            kept := kept || i;
            number := cardinality(kept);
        end if;
        return next;
    end loop;
end
$$;

comment on function pgrag._choose_passages(text[], int[], bigint[], int[], int[], int) is
'Chooses greedily, best first, which candidates a budget is spent on.
The arrays run alongside each other, in order of rank: texts, tokens, documents, and spans in these. One row a candidate: its rank from 1, and either its number among the chosen, from 1, or why it is left out: it has the same text as a chosen one but for case and white space, shares at least half of the shorter span with one of its own document, says nearly the same in the same words (pgrag._same_words), or costs more than is left. A candidate too large for what is left leaves room for smaller ones after it.';
