-- Decides where chunks begin and end: blocks stay whole where they fit, sections never share a chunk.
create or replace function pgrag._split_spans(content text, max_tokens int)
returns table (heading_path text[], char_start int, char_end int, byte_start int, byte_end int)
language plpgsql
immutable
parallel safe
strict
rows 100
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    longest_heading constant int := 200;
    content_bytes constant bytea := pg_catalog.convert_to(content, 'UTF8'); -- cut by byte: substr() counts from the start
    line record;
    line_text text;
    first_piece text;
    piece record;
    levels int[] := '{}';
    titles text[] := '{}';
    last_level int;
    is_open boolean := false;       -- the result's columns are the open chunk; "return next" closes it
    open_units int;
    only_headings boolean := false; -- the open chunk still waits for its section's text
    keep_whole boolean;             -- the block at hand goes into one chunk
    fits boolean;
    room int;
    piece_char int;
    piece_byte int;
begin
    for line in
        select
            l.*,
            pg_catalog.lag(l.block, 1, 0) over (order by l.char_start) <> l.block as is_first,
            pg_catalog.max(l.char_end) over block_lines as block_char_end,
            pg_catalog.max(l.byte_end) over block_lines as block_byte_end,
            (pg_catalog.sum(l.units) over block_lines)::int as block_units
        from pgrag._split_lines(content) as l
        window block_lines as (partition by l.block)
        order by l.char_start
    loop
        if line.kind = 'heading' then
            while levels[pg_catalog.cardinality(levels)] >= line.level loop
                levels := pg_catalog.trim_array(levels, 1);
                titles := pg_catalog.trim_array(titles, 1);
            end loop;
            levels := levels || line.level;
            titles := titles || case
                when pg_catalog.length(line.heading) > longest_heading then pg_catalog.left(line.heading, longest_heading) || '…'
                else line.heading
            end;
        end if;

        -- Where a block begins: does it go whole, and into the open chunk?
        if line.is_first then
            fits := is_open and pgrag._estimate_from_counts(
                open_units + line.block_units, line.block_char_end - char_start, line.block_byte_end - byte_start
            ) <= max_tokens;
            if line.kind = 'heading' then
                -- Only under a heading that has no text of its own.
                fits := fits and only_headings and line.level > last_level;
                last_level := line.level;
            end if;
            keep_whole := fits or pgrag._estimate_from_counts(
                line.block_units, line.block_char_end - line.char_start, line.block_byte_end - line.byte_start
            ) <= max_tokens;
            if is_open and not fits then
                if only_headings and (line.kind = 'text' or (line.kind <> 'heading' and not keep_whole)) then
                    keep_whole := false; -- rather cut than leave the heading alone
                else
                    return next;
                    is_open := false;
                end if;
            end if;
        end if;

        fits := is_open and (keep_whole or pgrag._estimate_from_counts(
            open_units + line.units, line.char_end - char_start, line.byte_end - byte_start
        ) <= max_tokens);
        if fits or keep_whole or (not only_headings and pgrag._estimate_from_counts(
            line.units, line.char_end - line.char_start, line.byte_end - line.byte_start
        ) <= max_tokens) then
            if is_open and not fits then
                return next;
            end if;
            if not fits then
                heading_path := titles;
                char_start := line.char_start;
                byte_start := line.byte_start;
                open_units := 0;
                is_open := true;
            end if;
            open_units := open_units + line.units;
        else
            -- Into a variable first: as a parameter of the query the whole text would be copied into its plan.
            line_text := pg_catalog.convert_from(
                pg_catalog.substring(content_bytes, line.byte_start + 1, line.byte_end - line.byte_start), 'UTF8'
            );
            room := max_tokens;
            if is_open and only_headings then
                room := room - pgrag._estimate_from_counts(open_units, char_end - char_start, byte_end - byte_start) - 2;
                select p.piece into first_piece from pgrag._split_pieces(line_text, max_tokens) as p limit 1;
                if pgrag._estimate_tokens(first_piece) <= room then
                    room := max_tokens; -- the heading has a whole sentence, so the others may stay whole too
                end if;
            end if;
            piece_char := line.char_start;
            piece_byte := line.byte_start;
            for piece in select p.characters, p.octets, p.units from pgrag._split_pieces(line_text, room) as p loop
                fits := is_open and pgrag._estimate_from_counts(
                    open_units + piece.units,
                    piece_char + piece.characters - char_start,
                    piece_byte + piece.octets - byte_start
                ) <= max_tokens;
                if not fits then
                    if is_open then
                        return next;
                    end if;
                    heading_path := titles;
                    char_start := piece_char;
                    byte_start := piece_byte;
                    open_units := 0;
                    is_open := true;
                end if;
                open_units := open_units + piece.units;
                piece_char := piece_char + piece.characters;
                piece_byte := piece_byte + piece.octets;
                char_end := piece_char;
                byte_end := piece_byte;
            end loop;
        end if;
        char_end := line.char_end;
        byte_end := line.byte_end;
        if line.kind in ('heading', 'underline') then
            heading_path := titles;
            only_headings := pgrag._estimate_from_counts(open_units, char_end - char_start, byte_end - byte_start) <= max_tokens / 2;
        else
            only_headings := false;
        end if;
    end loop;
    if is_open then
        return next;
    end if;
end
$$;

comment on function pgrag._split_spans(text, int) is
'Where each chunk begins and ends, in order: half-open, from 0, in characters and in bytes of UTF-8.
Paragraphs of a section share a chunk while they fit in max_tokens by _estimate_from_counts(); fenced code and tables stay whole where they fit.
A section begins a chunk with its heading, together with the headings above it that have no text; a long paragraph is cut at line
ends, sentence ends, spaces, or anywhere, in this order of preference, and so are code and tables that are too long. heading_path is
outermost first, each heading cut at 200 characters. Every character but white space is in exactly one chunk. Time is linear in the text.
NULL gives no row.';
