-- Keeps, for the rest of the transaction, which ACLs the asserted principals may read through.
create or replace function pgrag._keep_acl_bits(who name) returns void
language plpgsql volatile parallel unsafe security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if not pg_has_role(session_user, who, 'member') then
        return;
    end if;
    perform set_config(
        'pgrag.acl_bits',
        concat_ws(':', pgrag._access_version(), md5(current_setting('pgrag.principals', true)), pgrag._compute_acl_bits(who)),
        true
    );
end
$$;

comment on function pgrag._keep_acl_bits(name) is
'Keeps, for the rest of the transaction, which ACLs the asserted principals may read through, in the setting pgrag.acl_bits; pgrag.visible_acl_bits believes it only of members of pgrag_app. Called by act_as.';
