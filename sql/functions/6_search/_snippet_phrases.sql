-- Reads the phrases out of what a query requires, word by word.
create or replace function pgrag._snippet_phrases(required tsquery)
returns table (phrase int, step int, lexeme text, is_prefix boolean)
language sql immutable parallel safe security invoker
begin atomic
with part as (
    select p.nth, p.found[1] as lexeme, p.found[2] is not null as is_prefix, p.found[3] as distance, p.found[4] as operator
    from regexp_matches(required::text, $re$'((?:[^']|'')*)'(:[*A-D]+)?|<(-|[0-9]+)>|([&|!])$re$, 'g') with ordinality as p (found, nth)
),

placed as (
    select p.nth, p.lexeme, p.is_prefix,
        (count(*) filter (where p.operator is not null) over (order by p.nth))::int as phrase,
        case p.distance when '-' then 1 else p.distance::int end as distance
    from part as p
),

stepped as (
    select p.phrase, p.lexeme, p.is_prefix,
        (coalesce(sum(p.distance) over (partition by p.phrase order by p.nth), 0))::int as step
    from placed as p
)

select s.phrase, s.step, replace(replace(s.lexeme, '''''', ''''), '\\', '\') as lexeme, s.is_prefix
from stepped as s
where s.lexeme is not null;
end;

comment on function pgrag._snippet_phrases(tsquery) is
'Reads the phrases out of what a query requires (_parse_query), a row a word: phrase numbers them, step is a word''s distance from the phrase''s first, from 0.
Whether they are joined by & or | doesn''t matter here. NULL gives no row.';
