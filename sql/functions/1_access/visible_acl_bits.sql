-- Gives the policies one bit per ACL: whether a database role may read through it.
create or replace function pgrag.visible_acl_bits(who name) returns bit varying
language plpgsql stable parallel safe security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    kept text;
begin
    if not pg_has_role(session_user, who, 'member') then
        return B'';
    end if;
    if pg_has_role(who, 'pgrag_app', 'member') then
        kept := nullif(current_setting('pgrag.acl_bits', true), '');
        -- Whoever could forge it may act as anybody.
        if starts_with(kept, pgrag._acl_bits_stamp()) and pg_input_is_valid('x' || split_part(kept, ':', 3), 'bit varying') then
            return ('x' || split_part(kept, ':', 3))::bit varying;
        end if;
    end if;
    return pgrag._compute_acl_bits(who);
end
$$;

comment on function pgrag.visible_acl_bits(name) is
'Gives the policies one bit per ACL: bit number acl_id, from 0, is 1 where a database role may read through that ACL.
Empty for nobody, and unless the session user is a member of `who`. What act_as kept is used while no membership or ACL entry has changed since, so a revocation counts from the next statement.';
