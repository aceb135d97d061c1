-- Escapes what HTML would read as markup, in text and in quoted attributes.
create or replace function pgrag._escape_html(content text) returns text
language sql immutable parallel safe security invoker
begin atomic
select replace(replace(replace(replace(replace(content, '&', '&amp;'), '<', '&lt;'), '>', '&gt;'), '"', '&quot;'), '''', '&#39;');
end;

comment on function pgrag._escape_html(text) is
'Escapes & < > " and '' as HTML entities: safe as text and within a quoted attribute. NULL gives NULL.';
