#!/usr/bin/env bash
# Makes sure that there is a Debian trixie in which packages of gwmond are built and installed
# (tests/packaging/debian.py): a directory of its own with dh, venv and systemd (about 550 MB, a
# minute). Tests work on copies. Safe to run again: what is there already is left alone.
#
#   GWMOND_POOL_CHROOTS   where this Debian goes, and where tests/pool/setup.sh has put its own
#   GWMOND_POOL_MIRROR    its mirror                                        (deb.debian.org)
set -euo pipefail

chroots=${GWMOND_POOL_CHROOTS:-/var/cache/gwmond-pool}
root=$chroots/packaging partial=$chroots/packaging.partial log=$chroots/packaging.log
packages=(debhelper python3-venv systemd)

say() { printf 'packaging setup: %s\n' "$*"; }
die() { printf 'packaging setup: %s\n' "$*" >&2; exit 1; }

if [ -d "$root" ]; then
    say "nothing to do, Debian is in $root"
    exit 0
fi
[ "$(id -u)" -eq 0 ] || die "must be run as root: sudo $0"
mkdir -p "$chroots"
exec 9>"$chroots/packaging.lock"
flock 9 # one run at a time
[ ! -d "$root" ] || exit 0

rm -rf --one-file-system "$partial"
if [ -d "$chroots/trixie" ]; then
    cp -a "$chroots/trixie" "$partial"
else
    debootstrap --variant=minbase trixie "$partial" \
        "${GWMOND_POOL_MIRROR:-http://deb.debian.org/debian}" >"$log" 2>&1 ||
        die "debootstrap failed, its log is $log"
fi
say "installing ${packages[*]} into $root"
# Nothing is started, and no documentation is unpacked: neither dpkg nor apt is asked twice.
printf '#!/bin/sh\nexit 101\n' >"$partial/usr/sbin/policy-rc.d"
chmod 0755 "$partial/usr/sbin/policy-rc.d"
cp /etc/resolv.conf "$partial/etc/resolv.conf"
inside=(unshare --mount --pid --fork --kill-child chroot "$partial" sh -euc)
"${inside[@]}" 'mount -t proc proc /proc; export DEBIAN_FRONTEND=noninteractive
    apt-get update -q; apt-get install -y -q --no-install-recommends "$@"' \
    sh "${packages[@]}" </dev/null >"$log" 2>&1 ||
    { tail -n 20 "$log" >&2; die "installing failed, its log is $log"; }
rm -rf "$partial/usr/sbin/policy-rc.d" "$partial/var/cache/apt/archives" \
    "$partial/var/lib/apt/lists" "$log"
mv "$partial" "$root"
say "done: $(chroot "$root" dpkg-query --show debhelper)"
