#!/bin/sh
# Finds the database, waits until it answers, then becomes `pgrag "$@"`.
#
# The database is PGRAG_DATABASE_URL, or else libpq's PGHOST, PGPORT, PGDATABASE and PGUSER; the password is in the
# file PGRAG_PASSWORD_FILE. It is asked PGRAG_WAIT_TRIES times (60), PGRAG_WAIT_SECONDS (1) apart.
set -eu

here=$(dirname -- "$0")

case "${1:-}" in
'' | -*) exec pgrag "$@" ;; # help and version need no database
esac

if [ -z "${PGRAG_DATABASE_URL:-}" ]; then
    if [ -z "${PGHOST:-}" ] || [ -z "${PGUSER:-}" ]; then
        echo "Error: neither PGRAG_DATABASE_URL nor PGHOST and PGUSER are set." >&2
        echo "Try: docker compose --file docker/compose.yaml up" >&2
        exit 1
    fi
    # libpq takes from PG* what a connection string leaves out.
    PGRAG_DATABASE_URL=postgresql://
    export PGRAG_DATABASE_URL
fi
# shellcheck source=docker/pgpass.sh
. "$here/pgpass.sh"

tries=${PGRAG_WAIT_TRIES:-60}
tried=0
until problem=$(python -c '
import os, sys, psycopg
try:
    psycopg.connect(os.environ["PGRAG_DATABASE_URL"], connect_timeout=5).close()
except psycopg.Error as error:
    print(str(error).strip().splitlines()[0])
    sys.exit(1)
'); do
    tried=$((tried + 1))
    if [ "$tried" -ge "$tries" ]; then
        echo "Error: no database answered, asked $tried times: $problem" >&2
        echo "Try: docker compose --file docker/compose.yaml logs db" >&2
        exit 1
    fi
    sleep "${PGRAG_WAIT_SECONDS:-1}"
done

exec pgrag "$@"
