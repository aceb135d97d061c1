-- Lists the chunks of the documents that a narrow metadata filter leaves.
create or replace function pgrag._narrow_filter(collection_id int, filter jsonb) returns bigint[]
language plpgsql stable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    most constant int := 1000;
    ids bigint[];
begin
    if filter = '{}' then
        return null;
    end if;
    ids := array(
        select d.document_id from pgrag.document as d
        where d.collection_id = _narrow_filter.collection_id and d.metadata @> filter
        limit most + 1
    );
    if cardinality(ids) > most then
        return null;
    end if;
    return array(
        select c.chunk_id from pgrag.chunk as c
        where c.collection_id = _narrow_filter.collection_id and c.document_id = any(ids)
        order by c.chunk_id
    );
end
$$;

comment on function pgrag._narrow_filter(int, jsonb) is
'Lists the chunks of the documents that a narrow metadata filter leaves; NULL where there is no filter or it leaves more than 1,000 documents, and then candidates are checked best first.';
