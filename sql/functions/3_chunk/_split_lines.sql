-- Reads text line by line and says what each is: heading, fenced code, table or plain text, and which block it belongs to.
create or replace function pgrag._split_lines(content text)
returns table (
    block int,
    kind text,
    level int,
    heading text,
    char_start int,
    char_end int,
    byte_start int,
    byte_end int,
    units int
)
language plpgsql
immutable
parallel safe
strict
rows 1000
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    blanks constant text := E' \t\r\f\v';
    line record;
    stripped text;
    mark text;
    parts text[];
    fence text;
    previous text := 'blank';
begin
    block := 0;
    char_end := -1;
    byte_end := -1;
    for line in
        select
            l.line,
            pg_catalog.lead(l.line) over (order by l.place) as next_line,
            pg_catalog.length(l.line) as characters,
            pg_catalog.octet_length(l.line) as octets
        from pg_catalog.string_to_table(content, E'\n') with ordinality as l (line, place)
        order by l.place
    loop
        char_start := char_end + 1;
        char_end := char_start + line.characters;
        byte_start := byte_end + 1;
        byte_end := byte_start + line.octets;
        stripped := pg_catalog.btrim(line.line, blanks);
        if stripped = '' and fence is null then
            previous := 'blank';
            continue;
        end if;
        level := null;
        heading := null;
        mark := pg_catalog.left(stripped, 1);
        if fence is not null then
            kind := 'fence';
            if mark = pg_catalog.left(fence, 1) and pg_catalog.starts_with(stripped, fence) and pg_catalog.btrim(stripped, mark) = '' then
                fence := null;
            end if;
        elsif previous = 'setext' then
            kind := 'underline';
        else
            kind := 'text';
            if mark = '`' or mark = '~' then
                parts := pg_catalog.regexp_match(stripped, '^(`{3,}|~{3,})([^`]*)$');
                if parts is not null then
                    kind := 'fence';
                    fence := parts[1];
                    block := block + 1;
                    previous := 'fence';
                end if;
            elsif mark = '#' then
                parts := pg_catalog.regexp_match(stripped, '^(#{1,6})[ \t]+([^#].*)$');
                if parts is not null then
                    kind := 'heading';
                    level := pg_catalog.length(parts[1]);
                    heading := pg_catalog.regexp_replace(parts[2], '[ \t]+#+$', '');
                end if;
            elsif mark = '|' then
                kind := 'table';
            end if;
            if kind = 'text' and previous <> 'text' and line.next_line is not null
                and pg_catalog.left(line.next_line, 3) in ('===', '---')
                and pg_catalog.btrim(pg_catalog.rtrim(line.next_line, blanks), pg_catalog.left(line.next_line, 1)) = ''
                and mark not in ('-', '=', '>', '*', '+') and line.characters <= 200
            then
                kind := 'heading';
                level := case when pg_catalog.left(line.next_line, 1) = '=' then 1 else 2 end;
                heading := stripped;
            end if;
        end if;
        if kind <> previous and kind <> 'underline' or kind = 'heading' then
            block := block + 1;
        end if;
        previous := case
            when kind = 'heading' and mark <> '#' then 'setext'
            when kind = 'underline' or (kind = 'fence' and fence is null) then 'blank'
            else kind
        end;
        units := pg_catalog.regexp_count(line.line, '[[:alnum:]]+|[^[:alnum:][:space:]]');
        return next;
    end loop;
end
$$;

comment on function pgrag._split_lines(text) is
'One row for every line with something on it, in order.
block counts paragraphs, fenced code blocks, tables and headings from 1; kind is text, fence, table, heading or underline (of a heading);
level is 1 to 6 and heading the words of a heading, else NULL. char_start and char_end, byte_start and byte_end are half-open, from 0, in
UTF-8, without the line end. units is what _estimate_from_counts() counts. Blank lines are rows inside fenced code only; a fence that is never
closed reaches to the end. NULL gives no row.';
