-- Takes out of a text what a generator reads and a person doesn't see.
create or replace function pgrag._visible_text(content text) returns text
language plpgsql immutable parallel safe strict security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    -- C0 but tab, line feed and carriage return, DEL, C1; soft hyphen, joiner, Arabic letter mark, Hangul fillers, Khmer vowels,
    -- Mongolian selectors; zero width and directions; invisible operators, bidi; variation selectors; byte order mark, annotations.
    hidden constant text := '[\u0001-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f'
        '\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb'
        '\U0001d173-\U0001d17a\U000e0000-\U000e0fff]';
begin
    if content !~ hidden then
        return content;
    end if;
    return regexp_replace(content, hidden, '', 'g');
end
$$;

comment on function pgrag._visible_text(text) is
'Takes out of a text what a generator reads and a person doesn''t see.
Removes zero-width and bidirectional control characters, tag characters and variation selectors (U+E0000 to U+E0FFF, U+FE00 to U+FE0F), soft hyphens, blank fillers, and the C0 and C1 controls but tab, line feed and carriage return. The difference in length is how many there were. NULL gives NULL.';
