-- The roles of pgrag, cluster-wide: made by `pgrag init`, by an administrator who may create roles, once.
do $$
declare
    made text;
begin
    foreach made in array array['pgrag_owner', 'pgrag_reader', 'pgrag_app', 'pgrag_writer'] loop
        if not exists (select from pg_catalog.pg_roles where rolname = made) then
            begin
                execute pg_catalog.format('create role %I nologin', made);
            exception when duplicate_object or unique_violation then
                null;  -- another init was faster
            end;
        end if;
    end loop;
    if not pg_catalog.pg_has_role('pgrag_app', 'pgrag_reader', 'usage') then
        grant pgrag_reader to pgrag_app;
    end if;
    if not pg_catalog.pg_has_role(current_user, 'pgrag_owner', 'set') then
        execute pg_catalog.format('grant pgrag_owner to %I', current_user);
    end if;
end
$$;
