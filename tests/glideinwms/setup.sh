#!/usr/bin/env bash
# Makes sure that what tests of a real GlideinWMS need is there: GlideinWMS's source (source.py says
# where it is looked for), and a Debian trixie with HTCondor and the packages of GlideinWMS (0.9 GB,
# two minutes). Without the source it says so, and the tests are left out. Safe to run again.
#
#   GLIDEINWMS_SOURCE     GlideinWMS: a directory or a .tgz        (../shared/gwms/glideinwms.tgz)
#   GWMOND_POOL_CHROOTS   where this Debian goes, and a clone of GlideinWMS (tests/pool/debian.sh)
set -euo pipefail
cd "$(dirname "$0")/../.."

what=glideinwms
. tests/pool/debian.sh
clone=$chroots/glideinwms-source
upstream=https://github.com/glideinWMS/glideinwms.git
before=2026-02-27 # the last commit of its master before that day
packages=(htcondor python3-cffi-backend python3-m2crypto rrdtool python3-rrdtool python3-jwt
    python3-cryptography python3-yaml python3-requests python3-setuptools curl wget openssl perl gawk
    procps file ca-certificates)

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
debian 'useradd -r -d /var/lib/gwms-factory -s /bin/bash gfactory
    useradd -r -d /var/lib/gwms-frontend -s /bin/bash frontend
    : >/etc/resolv.conf
    mkdir -p /gwms /usr/lib/python3/dist-packages/glideinwms
    for part in factory frontend; do mkdir -p /etc/gwms-$part /var/lib/gwms-$part /var/log/gwms-$part; done' \
    "${packages[@]}"
say "done: $(chroot "$root" condor_version | head -n 1)"
