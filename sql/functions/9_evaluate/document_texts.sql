-- Lists the documents of a collection with their texts, as far as the caller may see them.
create or replace function pgrag.document_texts(collection text)
returns table (uri text, content text)
language sql stable parallel safe security invoker
begin atomic
select d.uri, concat_ws(E'\n', d.title, t.content) as content
from pgrag.collection as c
inner join pgrag.document as d on d.collection_id = c.collection_id
left join pgrag.document_text as t on t.collection_id = d.collection_id and t.document_id = d.document_id
where c.name = document_texts.collection
order by d.uri;
end;

comment on function pgrag.document_texts(text) is
'Lists the documents of a collection with their texts, as far as the caller may see them, by uri. For a baseline that ranks in memory.
content: title, line feed, text; without the title where there is none. No caller, no rows; a collection that the caller may not see is as if it did not exist.';
