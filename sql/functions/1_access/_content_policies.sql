-- Puts the row-level security policies on a table whose rows carry an acl_id.
create or replace function pgrag._content_policies(table_name text) returns void
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    execute format('alter table pgrag.%I enable row level security', table_name);
    execute format('alter table pgrag.%I force row level security', table_name);
    execute format('drop policy if exists read on pgrag.%I', table_name);
    execute format('drop policy if exists write on pgrag.%I', table_name);
    execute format('drop policy if exists own on pgrag.%I', table_name);
    -- One bit per ACL, fetched once a statement; a bit beyond the end reads as the empty string: invisible.
    execute format(
        'create policy read on pgrag.%I for select to pgrag_reader
        using (substring((select pgrag.visible_acl_bits(current_user)), acl_id + 1, 1) = B''1'')', table_name
    );
    execute format('create policy write on pgrag.%I for all to pgrag_writer using (true) with check (true)', table_name);
    execute format('create policy own on pgrag.%I for all to pgrag_owner using (true) with check (true)', table_name);
    execute format('comment on policy read on pgrag.%I is %L', table_name,
        'A row is visible where the bit of its ACL is set for the caller; no caller, no rows.');
    execute format('comment on policy write on pgrag.%I is %L', table_name,
        'Writers see and write all content: an update that hides a row from its writer would be refused otherwise.');
    execute format('comment on policy own on pgrag.%I is %L', table_name,
        'Triggers and definer functions run as the owner, which is not exempt where row security is forced.');
end
$$;

comment on function pgrag._content_policies(text) is
'Puts the row-level security policies on a table whose rows carry an acl_id: readers see what their ACLs allow, writers and the owner everything. The one place that says what the wall is.';
