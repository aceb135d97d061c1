-- Writes text in the one form that the analyzer reads: NFKC, plain hyphens and digits, nothing invisible, CJK as spaced bigrams.
create or replace function pgrag._normalise_text(content text)
returns text
language plpgsql
immutable
parallel safe
strict
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    -- What stays as it is: ASCII, Latin, Greek and Cyrillic letters, quotation marks, arrows and the like.
    special constant text := '[^\u0001-\u007f\u00a1-\u00a7\u00a9\u00ab\u00ac\u00ae\u00b0\u00b1\u00b6\u00b7\u00bb\u00bf-\u00de\u00e0-\u012f'
        '\u0131\u0134-\u013e\u0141-\u0148\u014a-\u017e\u0391-\u03a1\u03a3-\u03a9\u03ac-\u03af\u03b1-\u03ce\u0410-\u044f\u2014\u2018-\u2022'
        '\u20ac\u2190-\u21ff\u2500-\u257f]';
    invisible constant text := '[\u00ad\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u061c\u0640\u064b-\u065f\u0670'
        '\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e01ef]';
    -- Han with its marks, Hiragana, Katakana, Bopomofo, Hangul: scripts whose words the parser can't tell apart.
    cjk constant text := '\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u31a0-\u31bf\u31f0-\u31ff'
        '\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U000323af';
    normal text := content;
begin
    if pg_catalog.octet_length(content) = pg_catalog.length(content) or content !~ special then
        return content;
    end if;
    -- Letters and accents that stand in for an apostrophe; NFKC would make a space and a mark of the accent.
    normal := pg_catalog.translate(normal, 'ʼʻ´', '''''''');
    if normal is not nfkc normalized then
        normal := normalize(normal, nfkc);
    end if;
    -- Hyphens, the minus and the en dash become "-"; Cyrillic yo becomes ye, as people type it; the Turkish capital I keeps no dot.
    normal := pg_catalog.translate(normal, '‐‑‒–−־⁄ёЁİșțȘȚ', '------/еЕIşţŞŢ');
    if pg_catalog.strpos(normal, 'ß') > 0 then
        normal := pg_catalog.replace(normal, 'ß', 'ss');
    end if;
    if normal ~ invisible then
        normal := pg_catalog.translate(normal, E'\u200b', ' ');
        -- Soft hyphens, joiners, direction marks, variation selectors; Hebrew points, Arabic tatweel and harakat; accents that
        -- make no letter with what they stand on, such as those that say where a Russian word is stressed.
        normal := pg_catalog.regexp_replace(normal, invisible, '', 'g');
    end if;
    if normal ~ '[\u0622-\u06ff]' then
        -- Alef maksura, Persian yeh and kaf, Arabic and Persian digits, as any keyboard of the script types them.
        normal := pg_catalog.translate(normal, 'ىیک٠١٢٣٤٥٦٧٨٩۰۱۲۳۴۵۶۷۸۹٪٫٬', 'ييك01234567890123456789%.,');
    end if;
    if normal ~ ('[' || cjk || ']') then
        normal := pg_catalog.regexp_replace(normal, '([' || cjk || ']+)', ' \1 ', 'g');
        -- c1 c2 c3 becomes "c1c2 c2c3": each inner character ends one bigram and starts the next.
        normal := pg_catalog.regexp_replace(normal, '(?<=[' || cjk || '])([' || cjk || '])(?=[' || cjk || '])', '\1 \1', 'g');
    end if;
    return normal;
end
$$;

comment on function pgrag._normalise_text(text) is
'Text in the one form that the analyzer reads: NFKC, plain hyphens and digits, no invisible characters, CJK runs as spaced bigrams.
Case and accents stay, since stop words and stemmers need them. A CJK run of one character stays one character. Text without a
character that is written in several ways is returned as it is, ASCII among it. NULL gives NULL.';
