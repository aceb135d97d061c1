-- Cuts a very long run of text without a space into runs of ordinary length, with their places.
create or replace function pgrag._snippet_short_runs(run text)
returns table (part text, first int)
language sql immutable parallel safe security invoker
begin atomic
with split as (
    select s.part, (sum(length(s.part) + 1) over (order by s.nth rows unbounded preceding))::int - length(s.part) as first
    from regexp_split_to_table(run, '[_.:@&+#/,~%=?\\‐‑‒−–⁄－＿．：＠＆＋＃／，-]') with ordinality as s (part, nth)
),

-- Scripts without spaces, or what becomes one in the analyzer's form; each block ends with the character that the next begins with.
block as (
    select s.first + 200 * (b.nth::int - 1) as first, b.found[1] as part,
        left(lead(b.found[1]) over (partition by s.first order by b.nth), 1) as next
    from split as s
    cross join lateral regexp_matches(s.part, '.{1,200}', 'g') with ordinality as b (found, nth)
    where length(s.part) > 300
        and s.part ~ '[\u1100-\u11ff\u3005-\u30ff\u3105-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff66-\uff9f\U00020000-\U000323af]'
)

select s.part, s.first from split as s where length(s.part) between 1 and 300
union all
select b.part || coalesce(b.next, '') as part, b.first from block as b
union all
-- Of one word the analyzer reads the first 255 characters.
select left(s.part, 255) as part, s.first
from split as s
where length(s.part) > 300
    and s.part !~ '[\u1100-\u11ff\u3005-\u30ff\u3105-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff66-\uff9f\U00020000-\U000323af]';
end;

comment on function pgrag._snippet_short_runs(text) is
'Cuts a very long run of text without a space into runs of at most 300 characters; first: their places in it, from 1.
Names that are joined by signs come apart. A long stretch of Chinese, Japanese or Korean is cut into overlapping blocks, so that no pair of characters is lost; of any other long word only the beginning is kept.';
