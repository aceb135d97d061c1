-- Says under which chunk budgets one passage would hold a span of a document whole.
create or replace function pgrag.covering_budgets(collection text, uri text, char_start int, char_end int, budgets int[])
returns table (chunk_tokens int, covered boolean)
language plpgsql stable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    content text;
    core record;
begin
    select t.content into content
    from pgrag.collection as c
    inner join pgrag.document as d on d.collection_id = c.collection_id and d.uri = covering_budgets.uri
    inner join pgrag.document_text as t on t.collection_id = d.collection_id and t.document_id = d.document_id
    where c.name = covering_budgets.collection;
    if content is null or budgets is null then
        return;
    end if;
    select s.char_start, s.char_end into core from pgrag._core_span(content, char_start, char_end) as s;
    foreach chunk_tokens in array budgets loop
        covered := exists (
            select from pgrag._split_contents(content, pgrag._chunk_budget(chunk_tokens)) as s
            where s.char_start <= core.char_start and s.char_start + length(s.piece) >= core.char_end
        );
        return next;
    end loop;
end
$$;

comment on function pgrag.covering_budgets(text, text, int, int, int[]) is
'Says under which chunk budgets one passage would hold a span of a document whole: cuts its text anew for each, as pgrag.put_document does, and stores nothing.
char_start and char_end as in pgrag.trace_evidence. budgets: tokens, 16 to 8,192. One row each, in their order; none for a document that the caller may not see. Errors: RG012.';
