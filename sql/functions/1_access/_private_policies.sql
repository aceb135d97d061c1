-- Puts the row-level security policies on a table that readers may not see.
create or replace function pgrag._private_policies(table_name text, written boolean) returns void
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    execute format('alter table pgrag.%I enable row level security', table_name);
    execute format('alter table pgrag.%I force row level security', table_name);
    execute format('drop policy if exists write on pgrag.%I', table_name);
    execute format('drop policy if exists own on pgrag.%I', table_name);
    execute format('create policy own on pgrag.%I for all to pgrag_owner using (true) with check (true)', table_name);
    execute format('comment on policy own on pgrag.%I is %L', table_name,
        'Triggers and definer functions run as the owner, which is not exempt where row security is forced.');
    if written then
        execute format('create policy write on pgrag.%I for all to pgrag_writer using (true) with check (true)', table_name);
        execute format('comment on policy write on pgrag.%I is %L', table_name, 'Writers work here; grants say what they may do.');
    end if;
end
$$;

comment on function pgrag._private_policies(text, boolean) is
'Puts the row-level security policies on a table that readers may not see. written: whether members of pgrag_writer reach it, within their grants.';
