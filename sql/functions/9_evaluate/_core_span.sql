-- Takes the white space at both ends off a span of a text.
create or replace function pgrag._core_span(content text, inout char_start int, inout char_end int) returns record
language plpgsql immutable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    space constant text := E' \t\n\r\f\v\u001c\u001d\u001e\u001f\u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009'
        '\u200a\u2028\u2029\u202f\u205f\u3000';
    span text := substr(content, char_start + 1, char_end - char_start);
begin
    char_start := char_start + length(span) - length(ltrim(span, space));
    char_end := char_start + length(btrim(span, space));
end
$$;

comment on function pgrag._core_span(text, int, int) is
'Takes the white space at both ends off a span of a text, since passages begin and end without; what is left is empty where there was nothing else.';
