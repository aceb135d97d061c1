-- Says how many postings a run holds at most.
create or replace function pgrag._run_length() returns int
language sql immutable parallel safe security invoker
begin atomic
select 240;
end;

comment on function pgrag._run_length() is
'Says how many postings a run holds at most: 8 bytes each, so that it stays in its row of less than 2 kB, uncompressed.';
