-- Encodes text with a space's static encoder: the sum of its tokens' vectors, normalised.
-- v(text) = s / |s|, s = sum over tokens of n * v(token) + sum over pairs of neighbouring words of v(pair), where it has one.
create or replace function pgrag._embed_static(space_id int, content text)
returns halfvec
language plpgsql
stable
parallel safe
strict
security invoker
set search_path from current
set plan_cache_mode = force_generic_plan
as $$
declare
    total vector;
begin
    -- Summed as vector: halfvec would round after each addition, and stop at 65,504.
    select sum(v.embedding) into total
    from (
        select p.token, p.n from pgrag._wordpiece(content, _embed_static.space_id) as p
        union all
        -- No word piece holds a space, so a pair is written with one.
        select n.pair, count(*)::int
        from (
            select s.word || ' ' || lead(s.word) over (order by s.place) as pair
            from string_to_table(pgrag._bert_words(content), ' ') with ordinality as s (word, place)
            where s.word <> ''
        ) as n
        where n.pair is not null
        group by n.pair
    ) as p
    cross join lateral (
        select t.embedding::vector as embedding
        from pgrag.encoder_token as t
        where t.space_id = _embed_static.space_id and t.token = p.token collate "C"
        limit 1
    ) as v
    cross join lateral generate_series(1, p.n) as copy;
    if total is null or vector_norm(total) = 0 then
        return null;
    end if;
    return l2_normalize(total)::halfvec;
end
$$;

comment on function pgrag._embed_static(int, text) is
'The vector of a text by the static encoder of a space: the sum of its tokens'' vectors, and of those of neighbouring words that have one as a pair, of length 1.
NULL when no token of the text has a vector: empty text, unknown words only, a space without an encoder or one that the caller can''t see.
Equals StaticEncoder in Python within the rounding of halfvec.';
