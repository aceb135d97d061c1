# Sourced: libpq finds the password of PGRAG_PASSWORD_FILE through a private file, so it is in no environment and no argument.
# shellcheck shell=sh
if [ -n "${PGRAG_PASSWORD_FILE:-}" ]; then
    if [ ! -r "$PGRAG_PASSWORD_FILE" ]; then
        echo "Error: the password file $PGRAG_PASSWORD_FILE can't be read by user $(id -u)." >&2
        echo "Try: chmod 0444 the file on the host, inside a folder of mode 0700." >&2
        exit 1
    fi
    PGPASSFILE=$(umask 077 && mktemp "${TMPDIR:-/tmp}/pgpass.XXXXXX") || exit 1
    # In that file a backslash and a colon are written with a backslash before them.
    printf '*:*:*:*:%s\n' "$(sed -e 's/[\\:]/\\&/g' "$PGRAG_PASSWORD_FILE")" >"$PGPASSFILE"
    export PGPASSFILE
fi
