-- Shows the part of a text that a query looks for, with the matches marked.
create or replace function pgrag.snippet(
    content text,
    query text,
    analyzer text default 'english',
    max_characters int default 240,
    max_fragments int default 2,
    start_mark text default '<mark>',
    stop_mark text default '</mark>',
    escape_html boolean default true
) returns text
language plpgsql immutable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    parsed record;
begin
    perform pgrag._check_range('max_characters', max_characters, 1, 10000);
    perform pgrag._check_range('max_fragments', max_fragments, 1, 20);
    if content is null or query is null then
        return null;
    end if;
    -- Words are letters by the database's collation, not by that of a column.
    select p.terms, p.counts, p.prefixes, p.required into parsed
    from pgrag._parse_query(coalesce(analyzer, ''), query collate "default") as p;
    return pgrag._snippet(
        content collate "default", analyzer, parsed.terms, parsed.counts, parsed.prefixes, parsed.required,
        max_characters, max_fragments, coalesce(start_mark, ''), coalesce(stop_mark, ''), coalesce(escape_html, true)
    );
end
$$;

comment on function pgrag.snippet(text, text, text, int, int, text, text, boolean) is
'Shows the part of a text that a query looks for, with the matches marked.
query: as in pgrag.search_lexical. analyzer: a text search configuration, that of the document. max_characters: of the text that is shown, 1 to 10,000, marks and ellipses not counted; a text that isn''t longer comes whole. max_fragments: 1 to 20; they share max_characters, at least 20 each, joined by " … ", and there is only one where that holds as much of the query. start_mark, stop_mark: around each match; they are not escaped, so they are never for a user to choose.
escape_html: & < > " and '' of the text become entities, so that the result is safe to show as HTML; false: the text as it stands, for everything that isn''t HTML.
Matches are what search counts: words in every form that the analyzer takes for the same, the parts of names, identifiers however they are joined, prefixes, and "phrases" as a whole only. Excluded words are not marked. The fragments are those with the most different words of the query, then the shortest, then the first. A text without a match is shown from its beginning, with no mark. Text is never changed but by escape_html; … says where some was left out.
Depends on the arguments alone. NULL content or query gives NULL. Errors: RG001, RG010, RG011.';
