-- Analyses the chunks of documents anew whose language changed.
create or replace function pgrag._reanalyze_document() returns trigger
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if not exists (
        select from new_rows as n
        inner join old_rows as o on o.document_id = n.document_id
        where o.language is distinct from n.language
    ) then
        return null;
    end if;
    -- The trigger on chunk says which analyzer it is; lexeme_count -1 is never right, so that it does.
    update pgrag.chunk as c set lexeme_count = -1
    from new_rows as n
    inner join old_rows as o on o.document_id = n.document_id
    inner join pgrag.collection as l on l.collection_id = n.collection_id
    where o.language is distinct from n.language
        and c.collection_id = n.collection_id and c.document_id = n.document_id
        and c.analyzer <> coalesce(pgrag._language_analyzer(n.language), l.analyzer);
    return null;
end
$$;

comment on function pgrag._reanalyze_document() is
'Analyses the chunks of documents anew whose language changed, unless they were analysed by its configuration already. Statement trigger on document.';
