-- Finds the places of a text that a query looks for.
create or replace function pgrag._snippet_matches(
    content text, analyzer text, words text[], prefixes text[], required tsquery
) returns table (first int, last int, item int, weight int)
language plpgsql immutable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    is_ascii constant boolean := octet_length(content) = length(content);
    -- Nothing of it is written otherwise in the form that the analyzer reads. Where few characters can be, each run is asked.
    is_normal constant boolean := is_ascii
        or (octet_length(content) > length(content) * 1.05 and pgrag._normalise_text(content) = content);
    -- The analyzer joins "TS 999" and what is hyphenated at the end of a line.
    spans_space constant boolean := strpos(content, E'-\n') > 0
        or exists (select from unnest(words || prefixes) as u (lexeme) where u.lexeme ~ '^[[:alpha:]]+[0-9]');
    joiners constant text := '_.:@&+#/,~%=?\\';
    -- As in _snippet_pieces(), and what the analyzer's Unicode form makes letters or digits of.
    attached constant text := '\u00ad\u0300-\u036f\u0483-\u0489\u0591-\u05c7\u0610-\u061a\u061c\u0640\u064b-\u065f\u0670\u06d6-\u06ed\u0711\u0730-\u074a'
        '\u07a6-\u07b0\u0816-\u082d\u0859-\u085b\u08d3-\u0963\u0966-\u0e3a\u0e40-\u0e4e\u0e50-\u0eff\u0f18-\u0f39\u0f71-\u0f84\u0f86-\u0fbc'
        '\u102b-\u103e\u1056-\u1059\u105e-\u1074\u135d-\u135f\u17b4-\u17d3\u1dc0-\u1dff\u200c-\u200f\u202a-\u202e\u180e\u2060-\u206f'
        '\u20d0-\u20f0\u302a-\u302f\u3099\u309a\ufe00-\ufe0f\ufe20-\ufe2f\ufeff\U000e0000-\U000e01ef'
        '\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u209c\u2100-\u218b\u2460-\u24ff\u3200-\u33ff\U0001f100-\U0001f190';
    one_character constant text := '^.[\u1160-\u11ff\uff9e\uff9f' || attached || ']*';
    between constant text := case
        when is_ascii then '[^[:alnum:]' || joiners || '-]'
        else '[^[:alnum:]' || attached || joiners || '‐‑‒−–⁄－＿．：＠＆＋＃／，-]'
    end;
    -- What is not one word with a sign or two behind it.
    name constant text := '[-_.:@&+#/,~%=?\\][^-_.:@&+#/,~%=?\\]|^[-_.:@&+#/,~%=?\\]|[+#\\]|[[:lower:]][[:upper:]]|[[:upper:]]{2}[[:lower:]]'
        '|[0-9][[:alpha:]]|[[:alpha:]][0-9]';
    -- A run of these alone gives pairs of characters, so it can hold only pairs that are looked for.
    unspaced constant text := '^[\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]+$';
    wanted constant text := coalesce(
        (
            select string_agg(distinct l.lexeme, '|')
            from (
                select u.lexeme from unnest(words || prefixes) as u (lexeme)
                union all
                select p.lexeme from pgrag._snippet_phrases(required) as p
            ) as l
            where l.lexeme ~ unspaced
        ), '^$'
    );
    longest constant int := 300;
    -- So many words fit into a tsvector, whatever they are.
    batch_pieces constant int := case when is_ascii then 2000 else 300 end;
begin
    return query
    with split as materialized (
        select s.run, (sum(length(s.run) + 1) over (order by s.nth rows unbounded preceding))::int - length(s.run) as first
        from regexp_split_to_table(content, between) with ordinality as s (run, nth)
    ),

    token as materialized (
        select s.run, s.first from split as s where length(s.run) between 1 and longest
        union all
        select r.part, s.first + r.first - 1
        from split as s
        cross join lateral pgrag._snippet_short_runs(s.run) as r
        where length(s.run) > longest
    ),

    distinct_run as materialized (
        select d.run, d.id, d.written ~ name as is_name, d.is_unspaced or d.written ~ name or d.written <> d.run as is_special, d.is_unspaced
        from (
            select d.run, d.id, d.is_unspaced,
                case
                    when is_normal or d.is_unspaced or octet_length(d.run) = length(d.run) then d.run
                    else pgrag._normalise_text(d.run)
                end as written
            from (
                select t.run, min(t.first) as id, not is_ascii and t.run ~ unspaced as is_unspaced from token as t group by t.run
            ) as d
        ) as d
    ),

    piece as materialized (
        select d.id, rtrim(d.run, '-_.:@&/,~%=?') as piece, 1 as first, length(rtrim(d.run, '-_.:@&/,~%=?')) as last, 1 as place
        from distinct_run as d
        where not d.is_special
        union all
        -- The same as _snippet_pieces() gives, and less of it: there are many.
        select s.id, s.piece, s.last - length(s.piece) + 1, s.last, s.place
        from (
            select d.id, p.piece,
                (sum(length(p.piece)) over (partition by d.id order by c.nth, p.nth))::int as last,
                (count(*) filter (where p.piece ~ '[[:alnum:]]') over (partition by d.id order by c.nth, p.nth))::int as place
            from distinct_run as d
            cross join lateral string_to_table(
                regexp_replace(d.run, '([^[:alnum:]])', E'\x01\\1\x01', 'g'), E'\x01'
            ) with ordinality as c (segment, nth)
            cross join lateral string_to_table(pgrag._snippet_cut(c.segment), ' ') with ordinality as p (piece, nth)
            where d.is_special and octet_length(d.run) = length(d.run)
        ) as s
        where s.piece ~ '[[:alnum:]]'
        union all
        select d.id, p.piece, p.first, p.last, p.nth::int
        from distinct_run as d
        cross join lateral pgrag._snippet_pieces(d.run) with ordinality as p (piece, first, last, nth)
        where d.is_special and octet_length(d.run) > length(d.run) and not (d.is_unspaced and d.run !~ wanted)
    ),

    numbered as materialized (
        select n.piece, n.nth / batch_pieces as batch, n.nth % batch_pieces + 1 as nth
        from (
            select d.piece, row_number() over () - 1 as nth
            from (select distinct p.piece from piece as p where p.piece <> '') as d
        ) as n
    ),

    analysed as materialized (
        select n.batch, count(*) as pieces, pgrag.analyze(analyzer, string_agg(n.piece, ' ' order by n.nth) || ' zzqx') as lexemes
        from numbered as n
        group by n.batch
    ),

    -- Each piece is one word; the place of the word after the last says whether that is so.
    aligned as materialized (
        select a.batch, a.pieces, a.lexemes, a.pieces + 1 = (
            select max(l.positions[cardinality(l.positions)]) from unnest(a.lexemes) as l where l.lexeme = 'zzqx'
        ) as is_aligned
        from analysed as a
    ),

    lexeme as (
        select a.batch, p.nth::bigint as nth, l.lexeme
        from aligned as a
        cross join lateral unnest(a.lexemes) as l
        cross join lateral unnest(l.positions) as p (nth)
        where a.is_aligned and p.nth <= a.pieces
        union all
        select a.batch, n.nth, l.lexeme
        from aligned as a
        inner join numbered as n on n.batch = a.batch
        cross join lateral unnest(pgrag.analyze(analyzer, n.piece)) as l
        where a.is_aligned is not true
    ),

    phrase as materialized (
        select p.phrase, p.step, p.lexeme, p.is_prefix from pgrag._snippet_phrases(required) as p
    ),

    sought as (
        select w.lexeme, false as is_prefix, w.item::int, null::int as step from unnest(words) with ordinality as w (lexeme, item)
        union all
        select p.lexeme, true, (cardinality(words) + p.item)::int, null
        from unnest(prefixes) with ordinality as p (lexeme, item)
        union all
        select p.lexeme, p.is_prefix, cardinality(words) + cardinality(prefixes) + 1 + p.phrase, p.step from phrase as p
    ),

    found as (
        select l.batch, l.nth, s.item, s.step, false as is_begun
        from lexeme as l
        inner join sought as s on s.lexeme = l.lexeme
        where not s.is_prefix
        union all
        -- Of a pair of characters, only that which was asked for.
        select l.batch, l.nth, s.item, s.step, length(s.lexeme) = 1 and ascii(s.lexeme) >= 12288
        from lexeme as l
        inner join sought as s on s.is_prefix and starts_with(l.lexeme, s.lexeme)
    ),

    hit as materialized (
        select p.id, p.place, p.first, p.last, f.is_begun, f.item, f.step
        from found as f
        inner join numbered as n on n.batch = f.batch and n.nth = f.nth
        inner join piece as p on p.piece = n.piece
    ),

    -- Only phrases need to know where a word stands among all.
    counted as (
        select w.id, t.first, sum(w.words) over (order by t.first) - w.words as before
        from token as t
        inner join (
            select d.run, d.id, case when d.is_unspaced then greatest(length(d.run) - 1, 1) else count(p.place) end as words
            from distinct_run as d
            left join piece as p on p.id = d.id and p.piece <> ''
            group by d.run, d.id, d.is_unspaced
        ) as w on w.run = t.run
        where required is not null
    ),

    -- Two runs that the analyzer may take for one name.
    spaced as materialized (
        select t.run || case when right(t.run, 1) = '-' then E'\n' else ' ' end || t.next as run, t.first
        from (
            select t.run, t.first, lead(t.run) over (order by t.first) as next, lead(t.first) over (order by t.first) as next_first
            from token as t
            where spans_space
        ) as t
        where t.next_first = t.first + length(t.run) + 1
            and case
                when right(t.run, 1) = '-' then t.run ~ '[[:alnum:]]-$'
                else left(t.next, 1) between '0' and '9' and t.next ~ '^[0-9]{2,}' and t.run ~ '(?:^|[^[:alnum:]])[[:alpha:]]{1,5}$'
            end
    ),

    joined as materialized (
        select j.run, j.first, j.last, j.item
        from pgrag._snippet_joined(
            array(
                select d.run from distinct_run as d where d.is_name
                union all
                select distinct s.run from spaced as s
            ),
            analyzer, words, prefixes
        ) as j
    ),

    phrase_word as (
        select h.item, h.step, c.before + h.place - h.step as start, c.first + h.first - 1 as first, c.first + h.last - 1 as last
        from hit as h
        inner join counted as c on c.id = h.id
        where h.step is not null
    )

    select t.first + h.first - 1,
        t.first + case when h.is_begun then h.first + length(substring(substr(d.run, h.first) from one_character)) - 1 else h.last end - 1,
        h.item, 1
    from hit as h
    inner join distinct_run as d on d.id = h.id
    inner join token as t on t.run = d.run
    where h.step is null
    union all
    select t.first + j.first - 1, t.first + j.last - 1, j.item, 1
    from joined as j
    inner join token as t on t.run = j.run
    union all
    select s.first + j.first - 1, s.first + j.last - 1, j.item, 1
    from joined as j
    inner join spaced as s on s.run = j.run
    where strpos(content, j.run) > 0
    union all
    select min(w.first), max(w.last), w.item, count(distinct w.step)::int
    from phrase_word as w
    group by w.item, w.start
    having count(distinct w.step) = (
        select count(distinct p.step) from phrase as p where cardinality(words) + cardinality(prefixes) + 1 + p.phrase = w.item
    );
end
$$;

comment on function pgrag._snippet_matches(text, text, text[], text[], tsquery) is
'Finds the places of a text that a query looks for, in no order; they may overlap.
words, prefixes: to be marked where they stand; required: whose phrases are marked as a whole. first and last: characters, from 1, inclusive. item: index in words, then prefixes, then phrases; weight: the words of a phrase, else 1.';
