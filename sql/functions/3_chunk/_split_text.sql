-- Cuts Markdown or plain text into chunks that follow its structure, within a budget of tokens.
create or replace function pgrag._split_text(content text, title text, max_tokens int)
returns table (
    ordinal int,
    heading_path text[],
    page int,
    char_start int,
    char_end int,
    content text,
    context text,
    token_count int
)
language sql
immutable
parallel safe
called on null input
rows 100
security invoker
begin atomic
    select
        (row_number() over (order by cut.char_start))::int - 1,
        cut.heading_path,
        null::int,
        cut.char_start,
        cut.char_start + length(cut.piece),
        cut.piece,
        array_to_string(
            case
                when cut.heading_path[1] = _split_text.title then cut.heading_path
                else left(nullif(_split_text.title, ''), 200) || cut.heading_path
            end,
            ' › '
        ),
        pgrag._estimate_tokens(cut.piece)
    from pgrag._split_contents(_split_text.content, pgrag._chunk_budget(_split_text.max_tokens)) as cut
    order by cut.char_start;
end;

comment on function pgrag._split_text(text, text, int) is
'The chunks of a Markdown or plain text, in order.
ordinal counts from 0. char_start and char_end are half-open, from 0, in characters of the text, so that
content = substr(text, char_start + 1, char_end - char_start); every character but white space is in exactly one chunk, and no chunk ends
with white space. heading_path is outermost first, empty before the first heading. context is title › heading › heading, the title
once if the first heading repeats it, each cut at 200 characters. token_count is an estimate (_estimate_tokens) of content alone, at most
max_tokens. page is NULL: text has no pages. See _split_spans() for where it is cut. Empty or NULL content gives no row, a NULL title is left out.
RG012 where max_tokens is outside 16 to 8192.';
