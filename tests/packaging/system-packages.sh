#!/usr/bin/env bash
# Makes sure that Debian packages are installed: system-packages.sh PACKAGE...
#
# Nothing is done when all are there.  Tests want programs, not services: what is installed here is
# neither started now nor at the next boot.
set -euo pipefail

say() { printf 'packages: %s\n' "$*"; }
die() { printf 'packages: %s\n' "$*" >&2; exit 1; }

command -v apt-get >/dev/null || die "no apt-get here; install what corresponds to: $*"

missing=()
for package in "$@"; do
    state=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$state" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
    say "nothing to do, installed are: $*"
    exit 0
fi
[ "$(id -u)" -eq 0 ] || die "missing: ${missing[*]}. Run: sudo apt-get install ${missing[*]}"

say "installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
# While this file says 101, no package starts its service; one that an administrator made stays.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 0755 "$policy"
fi
install() { apt-get install -y -q --no-install-recommends "${missing[@]}" </dev/null; }
if ! install; then
    say "fetching apt's package lists first"
    apt-get update -q
    install
fi

# Offline: links are removed, and nobody is asked who may not run.
export SYSTEMD_OFFLINE=1
for package in "${missing[@]}"; do
    [ "$package" != systemd ] && command -v systemctl >/dev/null || continue
    dpkg-query --listfiles "$package" | sed -n 's|.*/systemd/system/\([^/@]*\.service\)$|\1|p' |
        xargs --no-run-if-empty systemctl --quiet disable || true
done
