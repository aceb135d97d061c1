#!/bin/sh
# Makes the roles that log in, as an administrator, after `pgrag init`: none of them is a superuser, each is a member of one role of pgrag.
#
#   pgrag_upgrader   pgrag_owner    runs `pgrag upgrade`
#   pgrag_worker     pgrag_writer   ingests, embeds
#   pgrag_api        pgrag_app      searches for people
#
# Passwords are read from the files upgrader_password, worker_password and api_password in PGRAG_SECRETS (/run/secrets).
# Run again it changes the passwords to what the files hold now. The connection is libpq's PGHOST, PGUSER and so on, with PGRAG_PASSWORD_FILE.
set -eu

secrets=${PGRAG_SECRETS:-/run/secrets}
for name in upgrader worker api; do
    if [ ! -s "$secrets/${name}_password" ]; then
        echo "Error: $secrets/${name}_password is empty or missing." >&2
        echo "Try: docker/make-secrets.sh" >&2
        exit 1
    fi
done
export secrets
# shellcheck source=docker/pgpass.sh
. "$(dirname -- "$0")/pgpass.sh"

psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 <<'SQL'
\set upgrader_password `cat "$secrets/upgrader_password"`
\set worker_password `cat "$secrets/worker_password"`
\set api_password `cat "$secrets/api_password"`

begin;
-- Passwords stay out of the server's log.
set local log_statement = 'none';
set local log_min_error_statement = 'panic';
set local log_min_duration_statement = -1;

select pg_catalog.format('create role %I', name)
from (values ('pgrag_upgrader'), ('pgrag_worker'), ('pgrag_api')) as wanted (name)
where not exists (select from pg_catalog.pg_roles where rolname = name)
\gexec

alter role pgrag_upgrader login nosuperuser nocreaterole nocreatedb noreplication nobypassrls password :'upgrader_password';
alter role pgrag_worker login nosuperuser nocreaterole nocreatedb noreplication nobypassrls password :'worker_password';
alter role pgrag_api login nosuperuser nocreaterole nocreatedb noreplication nobypassrls password :'api_password';

grant pgrag_owner to pgrag_upgrader;
grant pgrag_writer to pgrag_worker;
grant pgrag_app to pgrag_api;
commit;
SQL
