-- Cuts a text at the spans that were decided, without counting characters from its start for each.
create or replace function pgrag._split_contents(content text, max_tokens int)
returns table (heading_path text[], char_start int, piece text)
language plpgsql
immutable
parallel safe
strict
rows 100
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    content_bytes constant bytea := pg_catalog.convert_to(content, 'UTF8');
    span record;
begin
    for span in select s.* from pgrag._split_spans(content, max_tokens) as s loop
        heading_path := span.heading_path;
        char_start := span.char_start;
        piece := pg_catalog.rtrim(
            pg_catalog.convert_from(
                pg_catalog.substring(content_bytes, span.byte_start + 1, span.byte_end - span.byte_start), 'UTF8'
            ),
            E' \t\n\r\f\v'
        );
        if piece <> '' then
            return next;
        end if;
    end loop;
end
$$;

comment on function pgrag._split_contents(text, int) is
'The text of each span of _split_spans(), in order, without white space at its end; spans of white space are left out.
char_start counts characters from 0. Time is linear in the text, which substr() on a long text in UTF-8 is not. NULL gives no row.';
