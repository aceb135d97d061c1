-- Says for whom the application searches, until the end of the transaction.
create or replace function pgrag.act_as(variadic principals text[]) returns void
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    wrong text;
begin
    if not pg_has_role(current_user, 'pgrag_app', 'member') then
        raise exception 'role "%" may not act for others', current_user
            using errcode = 'RG020', hint = format('As an administrator: grant pgrag_app to %I', current_user);
    end if;
    if not row_security_active('pgrag.chunk') then
        raise exception 'row security is not active for role "%", which would see everything', current_user
            using errcode = 'RG021', hint = 'First: set local role to an application role, such as pgrag_app.';
    end if;
    if not current_setting('row_security')::boolean then
        raise exception 'row security is not active: row_security is off'
            using errcode = 'RG021', hint = 'set row_security = on';
    end if;
    select r.name into wrong from (values ('pgrag_writer'), ('pgrag_owner')) as r (name)
    where pg_has_role(current_user, r.name::name, 'usage');
    if found then
        raise exception 'role "%" is a member of %, and would see everything', current_user, wrong
            using errcode = 'RG021', hint = 'Search with a role that only searches; or first: set local role pgrag_app.';
    end if;
    if principals is null then
        raise exception 'principals must not be NULL'
            using errcode = 'RG022', hint = 'Pass names such as user:ana or group:hr.';
    end if;
    select coalesce(p.name, 'NULL') into wrong
    from unnest(principals) as p (name)
    where pgrag._is_principal(p.name) is not true
    limit 1;
    if found then
        raise exception '"%" is not the name of a principal', wrong
            using errcode = 'RG022', hint = 'Names are public, user:NAME or group:NAME.';
    end if;
    select p.name into wrong from unnest(principals) as p (name) where p.name like 'role:%' limit 1;
    if found then
        raise exception 'an application can''t act as a database role, got "%"', wrong
            using errcode = 'RG022', hint = 'Connect as that role, or pass user: and group: names.';
    end if;
    perform set_config('pgrag.principals', to_jsonb(principals)::text, true);
    perform pgrag._keep_acl_bits(current_user);
end
$$;

comment on function pgrag.act_as(text[]) is
'Says for whom the application searches, until the end of the transaction.
Replaces what was said before. `public` is always among them; groups that hold a given name are added; names nobody knows are accepted and see what public sees. No name at all (an empty array) sees nothing: for what everybody may see, say act_as(''public'').
Errors: RG020 the role is not a member of pgrag_app, RG021 row security is not active or lets the role see everything (superuser, BYPASSRLS, row_security off, member of pgrag_writer or pgrag_owner), RG022 a malformed or `role:` name.';
