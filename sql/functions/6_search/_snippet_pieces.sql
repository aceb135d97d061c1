-- Cuts what is written without a space into the words that the analyzer sees in it, with their places.
create or replace function pgrag._snippet_pieces(run text)
returns table (piece text, first int, last int)
language plpgsql immutable parallel safe strict security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    -- As in _normalise_text().
    cjk constant text := '\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u31a0-\u31bf\u31f0-\u31ff'
        '\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U000323af';
    -- What may make one character with the one before, or vanish.
    attached constant text := '\u00ad\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u061c\u0640\u064b-\u065f\u0670\u1160-\u11ff\u180e\u200c-\u200f\u202a-\u202e'
        '\u2060-\u206f\u3099\u309a\ufe00-\ufe0f\ufeff\uff9e\uff9f\U000e0000-\U000e01ef';
    -- Signs of scripts whose words go on behind them.
    inner_signs constant text := '\u06d6-\u06ed\u0711\u0730-\u074a\u07a6-\u07b0\u0816-\u082d\u0859-\u085b\u08d3-\u0963\u0966-\u0e3a\u0e40-\u0e4e'
        '\u0e50-\u0eff\u0f18-\u0f39\u0f71-\u0f84\u0f86-\u0fbc\u102b-\u103e\u1056-\u1059\u105e-\u1074\u135d-\u135f\u17b4-\u17d3\u20d0-\u20f0';
    normal text := run;
    starts int[];
    stops int[];
begin
    if octet_length(run) > length(run) then
        -- Without the pairs that the analyzer writes; one by one where that moves characters.
        select string_agg(
            case when m.found[1] ~ ('^[' || cjk || ']') then normalize(m.found[1], nfkc) else pgrag._normalise_text(m.found[1]) end, '' order by m.nth
        ) into normal
        from regexp_matches(run, '[' || cjk || ']+|[^' || cjk || ']+', 'g') with ordinality as m (found, nth);
        if length(normal) <> length(run) or run ~ ('[' || attached || ']') then
            select string_agg(c.normal, '' order by c.nth),
                array_agg(c.stop - c.length + 1 order by c.nth), array_agg(c.stop order by c.nth)
            into normal, starts, stops
            from (
                select c.nth, c.length, c.stop, substr(c.normal, g.g, 1) as normal
                from (
                    select m.nth, length(m.found[1]) as length,
                        (sum(length(m.found[1])) over (order by m.nth))::int as stop,
                        replace(pgrag._normalise_text(m.found[1]), ' ', '') as normal
                    from regexp_matches(run, '.[' || attached || ']*', 'g') with ordinality as m (found, nth)
                ) as c
                cross join lateral generate_series(1, length(c.normal)) as g (g)
            ) as c;
        end if;
        normal := regexp_replace(coalesce(normal, ''), '([' || cjk || ']+)', E'\x01\\1\x01', 'g');
        normal := regexp_replace(normal, '([^[:alnum:]\u0001' || attached || inner_signs || '])', E'\x01\\1\x01', 'g');
    else
        normal := regexp_replace(normal, '([^[:alnum:]])', E'\x01\\1\x01', 'g');
    end if;
    normal := replace(normal, ' ', '-');
    return query
    with segment as (
        select s.nth, p.nth as part, p.part as segment,
            (sum(length(p.part)) over (order by s.nth, p.nth))::int - length(p.part) as before
        from string_to_table(normal, E'\x01') with ordinality as s (segment, nth)
        cross join lateral string_to_table(pgrag._snippet_cut(s.segment), ' ') with ordinality as p (part, nth)
    ),

    placed as (
        select s.nth, s.part, s.segment as piece, s.before + 1 as first, s.before + length(s.segment) as last
        from segment as s
        where s.segment ~ '[[:alnum:]]' and (length(s.segment) = 1 or s.segment !~ ('^[' || cjk || ']'))
        union all
        select s.nth, c.nth, c.character || c.next, s.before + c.nth::int, s.before + c.nth::int + 1
        from segment as s
        cross join lateral (
            select t.nth, t.character, lead(t.character) over (order by t.nth) as next
            from string_to_table(s.segment, null) with ordinality as t (character, nth)
        ) as c
        where length(s.segment) > 1 and s.segment ~ ('^[' || cjk || ']') and c.next is not null
    )

    select p.piece, coalesce(starts[p.first], p.first), coalesce(stops[p.last], p.last)
    from placed as p
    order by p.nth, p.part;
end
$$;

comment on function pgrag._snippet_pieces(text) is
'Cuts what is written without a space into the words that the analyzer sees in it, in order; first and last: their characters in it, from 1, inclusive.
run: letters, digits, and the signs that names are joined by. "getUserById" gives four words, "TS-999" two, Chinese, Japanese and Korean overlapping pairs of characters. piece is in the form of pgrag._normalise_text; what that joined or dropped is part of the place all the same.';
