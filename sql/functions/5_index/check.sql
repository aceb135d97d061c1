-- Compares the index with the chunks, and the chunks with their documents; changes nothing.
create or replace function pgrag.check(collection text default null)
returns table (finding text, collection_name text, subject text, detail text)
language plpgsql stable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    most constant int := 100;
    one record;
begin
    if "check".collection is not null then
        perform pgrag._collection_id("check".collection);
    end if;
    -- One after the other, so that no more than one is in memory.
    for one in
        select c.collection_id, c.name from pgrag.collection as c
        where "check".collection is null or c.name = "check".collection
        order by c.name
    loop
        return query
        with found as materialized (
            select f.* from pgrag._check_chunks(one.collection_id) as f
            union all
            select f.* from pgrag._check_postings(one.collection_id) as f
            union all
            select f.* from pgrag._check_statistics(one.collection_id) as f
            union all
            select f.* from pgrag._check_vectors(one.collection_id) as f
        ),

        numbered as (
            select f.*, row_number() over (partition by f.finding order by f.place, f.subject, f.detail) as nth from found as f
        )

        select f.finding, one.name, f.subject, f.detail
        from (
            select n.finding, n.nth, n.subject, n.detail from numbered as n where n.nth <= most
            union all
            select n.finding, most + 1, null, format('%s in all, the first %s are listed', count(*), most)
            from numbered as n
            group by n.finding
            having count(*) > most
        ) as f (finding, nth, subject, detail)
        order by f.finding, f.nth;
    end loop;
end
$$;

comment on function pgrag.check(text) is
'Compares the index with the chunks, and the chunks with their documents; changes nothing. No row: all is right.
collection: NULL is all of them, one after the other. Findings, by name, a hundred of a kind at most and then a row without a subject that counts them:
span (content is not that part of the document''s text), hash, tsv (the analyzer is another, or gives something else: pgrag.reindex_chunks), length, document, readers (under another ACL than the document), posting, run, statistic, lexeme (pgrag.rebuild_postings), vector (a space lacks it and it is not queued), space.
One snapshot, beside readers and writers. For members of pgrag_writer and pgrag_owner; for anyone else the hidden rows would be findings. Error RG002.';
