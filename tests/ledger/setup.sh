#!/usr/bin/env bash
# Makes sure that the programs of a PostgreSQL server are there for the ledger's tests, which start
# a server of their own in a temporary directory (tests/ledger/server.py). No server is left running
# by this script. Safe to run again: what is there already is left alone.
set -euo pipefail

say() { printf 'ledger setup: %s\n' "$*"; }
die() { printf 'ledger setup: %s\n' "$*" >&2; exit 1; }

find_initdb() {
    command -v initdb && return
    for found in /usr/lib/postgresql/*/bin/initdb /usr/pgsql-*/bin/initdb; do
        [ -x "$found" ] && echo "$found" && return
    done
    return 1
}

if found=$(find_initdb); then
    say "nothing to do, PostgreSQL is installed: $found"
    exit 0
fi
[ "$(id -u)" -eq 0 ] || die "must be run as root, to install PostgreSQL: sudo $0"

if command -v apt-get >/dev/null; then
    # The package would make and start a cluster of its own.
    mkdir -p /etc/postgresql-common
    [ -e /etc/postgresql-common/createcluster.conf ] ||
        echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
    export DEBIAN_FRONTEND=noninteractive
    if ! apt-get install -y -q --no-install-recommends postgresql; then
        say "fetching apt's package lists first"
        apt-get update -q
        apt-get install -y -q --no-install-recommends postgresql
    fi
elif command -v dnf >/dev/null; then
    dnf install -y postgresql-server
else
    die "neither apt-get nor dnf is here: install a PostgreSQL server, initdb on PATH"
fi
say "done: $(find_initdb)"
