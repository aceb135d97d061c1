-- Writes text and a match behind it, marked, and both escaped for HTML where asked.
create or replace function pgrag._snippet_mark(plain text, match text, start_mark text, stop_mark text, escape_html boolean) returns text
language sql immutable parallel safe security invoker
begin atomic
select case when escape_html then pgrag._escape_html(plain) else plain end
    || case
        when match = '' then ''
        else start_mark || case when escape_html then pgrag._escape_html(match) else match end || stop_mark
    end;
end;

comment on function pgrag._snippet_mark(text, text, text, text, boolean) is
'Writes text and a match behind it, marked, and both escaped for HTML where asked. The marks are not escaped.';
