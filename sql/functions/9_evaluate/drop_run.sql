-- Forgets a run.
create or replace function pgrag.drop_run(run_id bigint) returns void
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgrag._check_run(run_id, '[]', '{}');
    delete from pgrag.run as r where r.run_id = drop_run.run_id;
end
$$;

comment on function pgrag.drop_run(bigint) is
'Forgets a run with everything that was kept of it. For members of pgrag_writer and pgrag_owner. Error RG034 no such run.';
