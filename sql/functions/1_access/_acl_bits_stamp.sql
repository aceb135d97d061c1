-- Says what kept ACL bits must begin with to be believed.
create or replace function pgrag._acl_bits_stamp() returns text
language sql stable parallel safe security definer
set search_path = pg_catalog, pg_temp
as $$
    select pgrag._access_version() || ':'
        || encode(sha256(convert_to(nullif(current_setting('pgrag.principals', true), ''), 'UTF8')), 'hex') || ':'
$$;

comment on function pgrag._acl_bits_stamp() is
'Says what kept ACL bits must begin with to be believed: the access version and a hash of the asserted principals, so that bits of other principals, or from before a change of access, are not. NULL where no principals are asserted.';
