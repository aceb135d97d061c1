-- Cuts text into the WordPiece tokens of a space's encoder, with how often each stands there.
--
-- Longest match first: the greatest token (in C order) not above the rest of the word is the longest prefix, if it is a prefix at all;
-- if it isn't, every prefix that is a token is shorter than it, so the rest is cut to below its length and looked up again.
create or replace function pgrag._wordpiece(query text, space_id int)
returns table (token text, n int)
language plpgsql
stable
parallel safe
strict
security invoker
rows 50
set search_path from current
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
begin
    return query
    with recursive word as materialized (
        -- `limit` keeps the planner, which takes every text for 1,000 words, from reading the whole table.
        select w.word, w.times, t.token
        from (
            select s.word, count(*)::int as times
            from string_to_table(pgrag._bert_words($1), ' ') as s (word)
            where s.word <> ''
            group by s.word
        ) as w
        left join lateral (
            select e.token from pgrag.encoder_token as e where e.space_id = $2 and e.token = w.word collate "C" limit 1
        ) as t on true
    ),
    piece as (
        -- start: characters already cut off; upto: most characters to try; token: what was found; failed: the word is unknown
        select
            w.word,
            w.times,
            0 as start,
            length(w.word) as upto,
            null::text collate "C" as token,
            length(w.word) > 100 as failed
        from word as w
        where w.token is null
        union all
        select
            p.word,
            p.times,
            p.start + case when f.fits then length(f.token) - p.mark else 0 end,
            case
                when f.fits then length(p.word) - p.start - length(f.token) + p.mark
                else least(length(f.token), p.upto + p.mark) - 1 - p.mark
            end,
            case when f.fits then f.token end,
            coalesce(not f.fits and least(length(f.token), p.upto + p.mark) - 1 - p.mark < 1, true)
        from (
            select q.*, case when q.start > 0 then 2 else 0 end as mark, case when q.start > 0 then '##' else '' end || substr(q.word, q.start + 1, q.upto) as rest
            from piece as q
            where not q.failed and q.upto > 0
        ) as p
        left join lateral (
            select t.token, starts_with(p.rest, t.token) and length(t.token) > p.mark as fits
            from pgrag.encoder_token as t
            where t.space_id = $2 and t.token <= p.rest collate "C"
            order by t.token desc
            limit 1
        ) as f on true
    ),
    unknown as materialized (select p.word, p.times from piece as p where p.failed),
    found as (
        select w.token, w.times from word as w where w.token is not null
        union all
        select p.token, p.times from piece as p where p.token is not null and p.word not in (select u.word from unknown as u)
        union all
        select '[UNK]', u.times from unknown as u
    )
    select f.token collate "default", sum(f.times)::int from found as f group by f.token;
end
$$;

comment on function pgrag._wordpiece(text, int) is
'WordPiece tokens of a text (uncased BERT) by the vocabulary of a static space, and how often each stands there; no order.
A word of over 100 characters, or with a part that no token covers, is one [UNK], which has no vector. Reads encoder_token under the
caller''s policy: of a hidden space everything is [UNK]. No row for an empty text; NULL gives no row.';
