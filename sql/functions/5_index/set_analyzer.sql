-- Changes the analyzer of a collection, for documents without a language that are written from now on.
create or replace function pgrag.set_analyzer(collection text, analyzer text) returns boolean
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    in_id int := pgrag._collection_id(collection);
begin
    perform pgrag._analyzer_config(coalesce(analyzer, ''));
    update pgrag.collection as c set analyzer = set_analyzer.analyzer
    where c.collection_id = in_id and c.analyzer <> set_analyzer.analyzer;
    return found;
end
$$;

comment on function pgrag.set_analyzer(text, text) is
'Changes the analyzer of a collection, for documents without a language that are written from now on; returns false where it was that already. Then pgrag.reindex_chunks, batch by batch: until its end, chunks that it hasn''t reached keep their analysis, and queries are analysed both ways. For members of pgrag_writer and pgrag_owner. Errors: RG002, RG010.';
