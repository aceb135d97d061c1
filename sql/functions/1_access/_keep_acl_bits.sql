-- Keeps, for the rest of the transaction, which ACLs the asserted principals may read through.
create or replace function pgrag._keep_acl_bits(who name) returns void
language plpgsql volatile parallel unsafe security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if not pg_has_role(session_user, who, 'member') or not pg_has_role(who, 'pgrag_app', 'member') then
        return;
    end if;
    -- In hex: the policies read it once for each table of a statement. What varbit_send puts first is the length.
    perform set_config(
        'pgrag.acl_bits',
        pgrag._acl_bits_stamp() || substr(encode(varbit_send(pgrag._compute_acl_bits(who)), 'hex'), 9),
        true
    );
end
$$;

comment on function pgrag._keep_acl_bits(name) is
'Keeps, for the rest of the transaction, which ACLs the asserted principals may read through, in the setting pgrag.acl_bits; pgrag.visible_acl_bits believes it only of members of pgrag_app. Does nothing for other roles, or unless the session user is a member of `who`. Called by act_as.';
