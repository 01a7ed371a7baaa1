#!/usr/bin/env bash
# The inside of debian.py's machine: a Debian with its own systemd, whose root is a directory.
#   $1 a directory of the test (not used here)   $2 the terminal that is the console   $3 the root
set -euo pipefail
console=$2 root=$3

ip link set lo up
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --bind "$root/proc/sys" "$root/proc/sys" # most sysctls are the whole machine's
mount -o remount,bind,ro "$root/proc/sys"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom tty; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
touch "$root/dev/console"
mount --bind "$console" "$root/dev/console"
mkdir "$root/dev/shm" "$root/dev/pts" "$root/run/host"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=666,mode=620 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"

cd "$root"
pivot_root . run/host
umount -l /run/host
mount --make-rshared /
exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin /usr/lib/systemd/systemd --system \
    --unit=multi-user.target --log-target=console --log-level=info --show-status=no
