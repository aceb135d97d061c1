-- Tells two chunks apart by what is indexed and embedded.
create or replace function pgrag._chunk_hash(context text, content text) returns bytea
language sql immutable parallel safe security invoker
begin atomic
select sha256(convert_to(context || E'\n' || content, 'UTF8'));
end;

comment on function pgrag._chunk_hash(text, text) is
'Tells two chunks apart by what is indexed and embedded: sha256 of context, a line feed and content.';
