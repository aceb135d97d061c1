#!/bin/sh
# Makes a random password for each role, in a folder that only its owner can enter; passwords that exist are kept.
#
# The files themselves may be read by all, since Compose mounts them as they are, and the user in the container is another.
set -eu

folder=${1:-$(dirname -- "$0")/secrets}
mkdir -p -- "$folder"
chmod 0700 -- "$folder"
for name in admin upgrader worker api; do
    file=$folder/${name}_password
    if [ ! -s "$file" ]; then
        (umask 077 && od -An -N 24 -t x1 /dev/urandom | tr -d ' \n' >"$file")
        chmod 0444 -- "$file"
    fi
done
