-- Cuts postings into runs that fit into a row.
create or replace function pgrag._cut_run(entries bigint[])
returns table (n bigint, max_tf smallint, min_ratio smallint, entries bigint[])
language sql immutable parallel safe security invoker
begin atomic
select count(*), max((e.entry >> 15) & 255)::smallint, min((e.entry & 32767) / ((e.entry >> 15) & 255))::smallint,
    array_agg(e.entry order by e.entry)
from (
    select u.entry, row_number() over (order by u.entry) as place
    from unnest(_cut_run.entries) as u (entry)
) as e
group by (e.place - 1) / pgrag._run_length();
end;

comment on function pgrag._cut_run(bigint[]) is
'Cuts postings into runs that fit into a row: of at most pgrag._run_length(), in the order of their chunks, each with its number and bounds.';
