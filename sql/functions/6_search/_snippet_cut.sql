-- Takes apart what the analyzer takes apart in letters and digits, with spaces between and nothing left out.
create or replace function pgrag._snippet_cut(segment text) returns text
language sql immutable parallel safe security invoker
begin atomic
select case
    when length(segment) between 2 and 255 and segment ~ '[[:lower:]][[:upper:]]|[[:upper:]]{2}[[:lower:]]|[0-9][[:alpha:]]|[[:alpha:]][0-9]'
        then pgrag._plain_words(segment)
    else segment
end;
end;

comment on function pgrag._snippet_cut(text) is
'Takes apart what the analyzer takes apart in letters and digits, at case and numbers, with spaces between and nothing left out. A sign alone stays as it is.';
