-- Refuses a document without readers, and makes new ones known where they may be.
create or replace function pgrag._check_readers(uri text, readers text[], create_readers boolean) returns void
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    if readers is null then
        raise exception 'document "%" has no readers', uri
            using errcode = 'RG008', hint = 'Name readers, such as array[''public'']; an empty array means nobody.';
    end if;
    if create_readers then
        perform pgrag.create_principals(variadic array(select ltrim(r.name, '!') from unnest(readers) as r (name)));
    end if;
end
$$;

comment on function pgrag._check_readers(text, text[], boolean) is
'Refuses a document whose readers are NULL, and makes readers known that are not where create_readers is true; an empty array means nobody. For members of pgrag_writer and pgrag_owner. Errors: RG008, RG022 a malformed reader.';
