# shellcheck shell=bash
# For the setup.sh that make a Debian trixie, named $what, with packages that tests need.
#
#   GWMOND_POOL_CHROOTS   where it goes, and where tests/pool/setup.sh has put its own
#   GWMOND_POOL_MIRROR    Debian's mirror                                   (deb.debian.org)

what=${what:?}
chroots=${GWMOND_POOL_CHROOTS:-/var/cache/gwmond-pool}
root=$chroots/$what partial=$chroots/$what.partial log=$chroots/$what.log

say() { printf '%s setup: %s\n' "$what" "$*"; }
die() { printf '%s setup: %s\n' "$what" "$*" >&2; exit 1; }

# Make the Debian, unless it is there. What is told by $1 is done in it, by sh, before it counts as
# made; the others are packages.
debian() {
    local done=$1
    shift
    if [ -d "$root" ]; then
        say "nothing to do, Debian is in $root"
        exit 0
    fi
    [ "$(id -u)" -eq 0 ] || die "must be run as root: sudo $0"
    mkdir -p "$chroots"
    exec 9>"$chroots/$what.lock"
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
    say "installing $* into $root"
    # Nothing is started, and no documentation is unpacked: neither dpkg nor apt is asked twice.
    printf '#!/bin/sh\nexit 101\n' >"$partial/usr/sbin/policy-rc.d"
    chmod 0755 "$partial/usr/sbin/policy-rc.d"
    cp /etc/resolv.conf "$partial/etc/resolv.conf"
    unshare --mount --pid --fork --kill-child chroot "$partial" sh -euc \
        'mount -t proc proc /proc; export DEBIAN_FRONTEND=noninteractive
        apt-get update -q; apt-get install -y -q --no-install-recommends "$@"
        '"$done" sh "$@" </dev/null >"$log" 2>&1 ||
        { tail -n 20 "$log" >&2; die "installing failed, its log is $log"; }
    rm -rf "$partial/usr/sbin/policy-rc.d" "$partial/var/cache/apt/archives" \
        "$partial/var/lib/apt/lists" "$log"
    mv "$partial" "$root"
}
