#!/usr/bin/env bash
# Makes sure that both versions of HTCondor are there for the tests that run a real pool
# (tests/pool/condor.py): 23 of Debian trixie, and 25 of Debian forky.
#
# An HTCondor that is installed (condor_master on PATH) is one of the two, by its own version. For the
# others a small Debian which has HTCondor is unpacked into a directory of its own (about 450 MB and
# two minutes each, both at once); the machine itself gets nothing but debootstrap. Safe to run again:
# what is there already is left alone.
#
#   GWMOND_POOL_CHROOTS   where these Debians go, a directory each   (/var/cache/gwmond-pool)
#   GWMOND_POOL_MIRROR    their mirror                               (apt's own, else deb.debian.org)
set -euo pipefail

chroots=${GWMOND_POOL_CHROOTS:-/var/cache/gwmond-pool}
declare -A suites=([23]=trixie [25]=forky)
declare -A packages=([23]=htcondor [25]=condor)
scripts=/usr/share/debootstrap/scripts

say() { printf 'pool setup: %s\n' "$*"; }
die() { printf 'pool setup: %s\n' "$*" >&2; exit 1; }

# The Debian mirror from which apt on this machine already fetches, without the security archive.
configured_mirror() {
    command -v apt-get >/dev/null || return 0
    apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 2>/dev/null |
        grep -v security | sed -n '1s|/*$||p'
}

# The key in `suites` for which the installed HTCondor stands; nothing if there is none.
installed() {
    local number
    command -v condor_master >/dev/null || return 0
    number=$(condor_version | sed -n 's/^\$CondorVersion: \([0-9]*\)\..*/\1/p')
    [ "${number:-0}" -lt 25 ] && echo 23 || echo 25
}

is_there() { [ -x "$chroots/${suites[$1]}/usr/sbin/condor_master" ]; }

install_debootstrap() {
    command -v debootstrap >/dev/null && return
    command -v apt-get >/dev/null || die "neither debootstrap nor apt-get is here: install debootstrap"
    say "installing debootstrap"
    export DEBIAN_FRONTEND=noninteractive
    if ! apt-get install -y -q --no-install-recommends debootstrap; then
        say "fetching apt's package lists first"
        apt-get update -q
        apt-get install -y -q --no-install-recommends debootstrap
    fi
}

# Unpacks the Debian of one version. A directory that is not complete never has the final name.
unpack() {
    local version=$1 suite=${suites[$1]} script
    local root=$chroots/$suite partial=$chroots/$suite.partial log=$chroots/$suite.log
    [ ! -e "$root" ] || die "$root is there but holds no HTCondor: remove it, or set GWMOND_POOL_CHROOTS"
    script=$scripts/$suite
    [ -e "$script" ] || script=$scripts/sid # an older debootstrap does not know the newest Debian
    rm -rf --one-file-system "$partial"
    say "unpacking Debian $suite with HTCondor $version from $mirror into $root"
    if ! debootstrap --variant=minbase --include="${packages[$version]},python3-cffi-backend,procps" \
        "$suite" "$partial" "$mirror" "$script" >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        die "debootstrap of $suite failed, its log is $log"
    fi
    # The package starts nothing in a chroot, but leave no doubt; its archives are not needed again.
    rm -rf "$partial/var/cache/apt/archives" "$partial/var/lib/apt/lists" "$log"
    mv "$partial" "$root"
    say "done: $(chroot "$root" condor_version | head -n 1)"
}

installed=$(installed)
missing=()
for version in "${!suites[@]}"; do
    if [ "$version" = "$installed" ]; then
        say "nothing to do for HTCondor $version, it is installed: $(command -v condor_master)"
    elif is_there "$version"; then
        say "nothing to do for HTCondor $version, it is in $chroots/${suites[$version]}"
    else
        missing+=("$version")
    fi
done
[ ${#missing[@]} -gt 0 ] || exit 0
[ "$(id -u)" -eq 0 ] || die "must be run as root (it unpacks a Debian into $chroots): sudo $0"

mkdir -p "$chroots"
exec 9>"$chroots/lock"
flock 9 # one run at a time
install_debootstrap
mirror=${GWMOND_POOL_MIRROR:-$(configured_mirror || true)}
mirror=${mirror:-http://deb.debian.org/debian}
jobs=()
for version in "${missing[@]}"; do
    is_there "$version" && continue # another run has unpacked it meanwhile
    unpack "$version" &
    jobs+=($!)
done
failed=0
for job in "${jobs[@]}"; do
    wait "$job" || failed=1
done
exit "$failed"
