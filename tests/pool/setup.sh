#!/usr/bin/env bash
# Makes sure that an HTCondor is there for the tests that run a real pool (tests/pool/condor.py).
#
# Where condor_master is on PATH there is nothing to do. Elsewhere a small Debian which has HTCondor is
# unpacked into a directory of its own (about 430 MB, under a minute); the machine itself gets
# nothing but debootstrap. Safe to run again: what is there already is left alone.
#
#   GWMOND_POOL_CHROOT   where that Debian goes          (/var/cache/gwmond-pool/trixie)
#   GWMOND_POOL_SUITE    which Debian                    (trixie: it has HTCondor 23.9)
#   GWMOND_POOL_MIRROR   whence                          (apt's own mirror, else deb.debian.org)
set -euo pipefail

chroot_dir=${GWMOND_POOL_CHROOT:-/var/cache/gwmond-pool/trixie}
suite=${GWMOND_POOL_SUITE:-trixie}
packages=htcondor,python3-cffi-backend,procps

say() { printf 'pool setup: %s\n' "$*"; }
die() { printf 'pool setup: %s\n' "$*" >&2; exit 1; }

# The Debian mirror of which apt on this machine already fetches, without the security archive.
configured_mirror() {
    command -v apt-get >/dev/null || return 0
    apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 2>/dev/null |
        grep -v security | sed -n '1s|/*$||p'
}

if found=$(command -v condor_master); then
    say "nothing to do, HTCondor is installed: $found"
    exit 0
fi
if [ -x "$chroot_dir/usr/sbin/condor_master" ]; then
    say "nothing to do, HTCondor is in $chroot_dir"
    exit 0
fi

[ "$(id -u)" -eq 0 ] || die "must be run as root (it unpacks a Debian into $chroot_dir): sudo $0"

if ! command -v debootstrap >/dev/null; then
    command -v apt-get >/dev/null || die "neither debootstrap nor apt-get is here: install debootstrap or HTCondor"
    say "installing debootstrap"
    export DEBIAN_FRONTEND=noninteractive
    if ! apt-get install -y -q --no-install-recommends debootstrap; then
        say "fetching apt's package lists first"
        apt-get update -q
        apt-get install -y -q --no-install-recommends debootstrap
    fi
fi

mirror=${GWMOND_POOL_MIRROR:-$(configured_mirror || true)}
mirror=${mirror:-http://deb.debian.org/debian}

mkdir -p "$(dirname "$chroot_dir")"
# One at a time; a directory that is not complete never has the final name.
exec 9>"$chroot_dir.lock"
flock 9
if [ -x "$chroot_dir/usr/sbin/condor_master" ]; then
    say "nothing to do, another run has put HTCondor into $chroot_dir"
    exit 0
fi
partial=$chroot_dir.partial
[ ! -e "$chroot_dir" ] || die "$chroot_dir is there but holds no HTCondor: remove it, or set GWMOND_POOL_CHROOT"
rm -rf --one-file-system "$partial"
say "unpacking Debian $suite with HTCondor from $mirror into $chroot_dir"
if ! debootstrap --variant=minbase --include="$packages" "$suite" "$partial" "$mirror" >"$partial.log" 2>&1; then
    tail -n 20 "$partial.log" >&2
    die "debootstrap failed, its log is $partial.log"
fi
# The package starts nothing in a chroot, but leave no doubt; and the archives are not wanted any more.
rm -rf "$partial/var/cache/apt/archives" "$partial/var/lib/apt/lists" "$partial.log"
mv "$partial" "$chroot_dir"
say "done: $(chroot "$chroot_dir" condor_version | head -n 1)"
