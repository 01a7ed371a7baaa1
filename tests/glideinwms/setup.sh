#!/usr/bin/env bash
# Makes sure that what tests of a real GlideinWMS need is there: GlideinWMS's source (source.py says
# where it is looked for), and a Debian trixie with HTCondor and the packages of GlideinWMS (0.9 GB,
# two minutes). Without the source it says so, and the tests are left out. Safe to run again.
#
#   GLIDEINWMS_SOURCE     GlideinWMS: a directory or a .tgz        (../shared/gwms/glideinwms.tgz)
#   GWMOND_POOL_CHROOTS   where this Debian goes, and a clone of GlideinWMS (/var/cache/gwmond-pool)
#   GWMOND_POOL_MIRROR    Debian's mirror                                   (http://deb.debian.org/debian)
set -euo pipefail
cd "$(dirname "$0")/../.."

chroots=${GWMOND_POOL_CHROOTS:-/var/cache/gwmond-pool}
root=$chroots/glideinwms partial=$chroots/glideinwms.partial log=$chroots/glideinwms.log
clone=$chroots/glideinwms-source
upstream=https://github.com/glideinWMS/glideinwms.git
before=2026-02-27 # the last commit of its master before that day
packages=(htcondor python3-cffi-backend python3-m2crypto rrdtool python3-rrdtool python3-jwt
    python3-cryptography python3-yaml python3-requests python3-setuptools curl wget openssl perl gawk
    procps file ca-certificates)

say() { printf 'glideinwms setup: %s\n' "$*"; }
die() { printf 'glideinwms setup: %s\n' "$*" >&2; exit 1; }

if [ ! -e "${GLIDEINWMS_SOURCE:-../shared/gwms/glideinwms.tgz}" ] && [ ! -d "$clone" ]; then
    mkdir -p "$chroots"
    rm -rf "$clone.partial"
    if ! { timeout 300 git clone --quiet --branch master --no-checkout "$upstream" "$clone.partial" &&
        git -C "$clone.partial" checkout --quiet \
            "$(git -C "$clone.partial" rev-list -1 --before="$before" HEAD)"; } >"$log" 2>&1; then
        say "no GlideinWMS (GLIDEINWMS_SOURCE, and $upstream does not answer): its tests are left out"
        exit 0
    fi
    mv "$clone.partial" "$clone"
fi
if [ -d "$root" ]; then
    say "nothing to do, Debian is in $root"
    exit 0
fi
[ "$(id -u)" -eq 0 ] || die "must be run as root: sudo $0"
mkdir -p "$chroots"
exec 9>"$chroots/glideinwms.lock"
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
say "installing GlideinWMS's packages into $root"
printf '#!/bin/sh\nexit 101\n' >"$partial/usr/sbin/policy-rc.d" # nothing is started
chmod 0755 "$partial/usr/sbin/policy-rc.d"
cp /etc/resolv.conf "$partial/etc/resolv.conf"
inside=(unshare --mount --pid --fork --kill-child chroot "$partial" sh -euc)
"${inside[@]}" 'mount -t proc proc /proc; export DEBIAN_FRONTEND=noninteractive
    apt-get update -q; apt-get install -y -q --no-install-recommends "$@"
    useradd -r -d /var/lib/gwms-factory -s /bin/bash gfactory
    useradd -r -d /var/lib/gwms-frontend -s /bin/bash frontend
    : >/etc/resolv.conf
    mkdir -p /gwms /usr/lib/python3/dist-packages/glideinwms
    for part in factory frontend; do mkdir -p /etc/gwms-$part /var/lib/gwms-$part /var/log/gwms-$part; done' \
    sh "${packages[@]}" </dev/null >"$log" 2>&1 ||
    { tail -n 20 "$log" >&2; die "installing failed, its log is $log"; }
rm -rf "$partial/usr/sbin/policy-rc.d" "$partial/var/cache/apt/archives" \
    "$partial/var/lib/apt/lists" "$log"
mv "$partial" "$root"
say "done: $(chroot "$root" condor_version | head -n 1)"
