-- Writes text in the one form that the analyzer reads: NFKC, plain hyphens, no invisible characters, CJK as spaced bigrams.
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
    -- Han with its marks, Hiragana, Katakana, Bopomofo, Hangul: scripts whose words the parser can't tell apart.
    cjk constant text := '\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u31a0-\u31bf\u31f0-\u31ff'
        '\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U000323af';
    normal text;
begin
    if pg_catalog.octet_length(content) = pg_catalog.length(content) then
        return content;
    end if;
    normal := content;
    if normal is not nfkc normalized then
        normal := normalize(normal, nfkc);
    end if;
    -- Hyphens, the minus and the en dash become "-"; Cyrillic yo becomes ye, as people type it.
    normal := pg_catalog.translate(normal, '‐‑−–ёЁ', '----еЕ');
    if normal ~ '[\u00ad\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]' then
        normal := pg_catalog.translate(normal, E'\u200b', ' ');
        -- Soft hyphens, joiners, direction marks, byte order marks; Hebrew points, Arabic tatweel and harakat.
        normal := pg_catalog.regexp_replace(
            normal,
            '[\u00ad\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u200c-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]+',
            '', 'g'
        );
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
'Text in the one form that the analyzer reads: NFKC, plain hyphens, no invisible characters, CJK runs as spaced bigrams.
Case and accents stay, since stop words and stemmers need them. A CJK run of one character stays one character. ASCII text is
returned as it is. NULL gives NULL.';
