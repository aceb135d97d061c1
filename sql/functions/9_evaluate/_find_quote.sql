-- Finds where a quote stands in a text, white space aside.
create or replace function pgrag._find_quote(content text, quote text, near int, out char_start int, out char_end int) returns record
language plpgsql immutable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    -- As pgrag._core_span has it.
    space constant text := '[\s\u001c-\u001f\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]';
    bare text;
    wanted text := regexp_replace(quote, space || '+', '', 'g');
    before int;
    found int;
begin
    if substr(content, near + 1, length(quote)) = quote and quote <> '' then
        char_start := near;
        char_end := near + length(quote);
        return;
    end if;
    if content is null or coalesce(wanted, '') = '' then
        return;
    end if;
    -- How many characters other than white space stand before the occurrence nearest to where it was.
    before := length(regexp_replace(left(content, coalesce(near, 0)), space || '+', '', 'g'));
    bare := regexp_replace(content, space || '+', '', 'g');
    select o.at into found
    from (
        select (sum(length(p.piece)) over (order by p.nth) + (p.nth - 1) * length(wanted))::int as at, p.nth, count(*) over () as pieces
        from unnest(string_to_array(bare, wanted)) with ordinality as p (piece, nth)
    ) as o
    where o.nth < o.pieces
    order by abs(o.at - before), o.at
    limit 1;
    if found is null then
        return;
    end if;
    -- Back to the characters of the text: runs of other than white space, and how many such characters each ends at.
    with run as (
        select length(m.parts[1]) as gap, length(m.parts[2]) as held, m.nth
        from regexp_matches(content, '(' || space || '*)([^' || substr(space, 2) || '+)', 'g') with ordinality as m (parts, nth)
    ),

    placed as (
        select sum(r.held) over w - r.held as first_held, sum(r.held) over w as last_held, sum(r.gap + r.held) over w - r.held as first_at
        from run as r
        window w as (order by r.nth)
    )

    select max(p.first_at + found - p.first_held) filter (where p.first_held <= found and found < p.last_held),
        max(p.first_at + found + length(wanted) - p.first_held)
            filter (where p.first_held < found + length(wanted) and found + length(wanted) <= p.last_held)
    into char_start, char_end
    from placed as p;
end
$$;

comment on function pgrag._find_quote(text, text, int) is
'Finds where a quote stands in a text, white space aside: the occurrence nearest to the character `near`, counted from 0; NULL: the first.
char_start and char_end as in pgrag.chunk: from 0, the end exclusive; NULL where the text does not hold it, or it is nothing but white space.';
