#!/usr/bin/env bash
# The inside of machine.py's machine: makes a root file system and becomes its systemd.
#
# The host's root is read-only; everything that systemd or the service writes is in memory.
#   $1 a directory to make it in, with units/ (unit files) and etc/gwmond/ (the configuration)
#   $2 the terminal that is the console
#   $3 the repository   $4 its Python's site-packages   $5 its Python's prefix
set -euo pipefail
work=$1 console=$2 repository=$3 packages=$4 prefix=$5
root=$work/root

mkdir "$root" "$work/over"
mount --bind / "$root"
mount -o remount,bind,ro "$root"
mount -t tmpfs -o mode=755 tmpfs "$work/over"
mkdir "$work/over/upper" "$work/over/work"
mount -t overlay -o "lowerdir=/etc,upperdir=$work/over/upper,workdir=$work/over/work" overlay "$root/etc"
for directory in run opt var/lib; do mount -t tmpfs -o mode=755 tmpfs "$root/$directory"; done
for directory in tmp var/tmp; do mount -t tmpfs -o mode=1777 tmpfs "$root/$directory"; done

mount -t proc proc "$root/proc"
mount --bind "$root/proc/sys" "$root/proc/sys" # most sysctls are the whole machine's
mount -o remount,bind,ro "$root/proc/sys"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"

mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom tty; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
touch "$root/dev/console"
mount --bind "$console" "$root/dev/console"
mkdir "$root/dev/shm" "$root/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=666,mode=620 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"

# What "pip install" into /opt/gwmond would make, from the Python and the packages that run the tests.
mkdir -p "$root/opt/gwmond/bin" "$root/opt/repository" "$root/opt/packages" "$root/opt/python"
mount --bind "$repository" "$root/opt/repository"
mount --bind "$packages" "$root/opt/packages"
mount --bind "$prefix" "$root/opt/python"
cp "$work/gwmond" "$root/opt/gwmond/bin/gwmond"
rm -rf "$root/etc/gwmond"
cp -a "$work/etc/gwmond" "$root/etc/gwmond"
mkdir "$root/run/log" "$root/run/units"
mount --bind "$work/log" "$root/run/log"

# Only these units exist; of the targets, those which every service wants.
for target in sysinit basic shutdown multi-user network-online; do
    printf '[Unit]\nDefaultDependencies=no\n' >"$root/run/units/$target.target"
done
cp -R "$work/units/." "$root/run/units/"

# A root of its own, not a chroot: in one, no user namespace (PrivateUsers=) can be made.  And shared
# as systemd wants it, else a service does not see its credentials.
mkdir "$root/run/host"
cd "$root"
pivot_root . run/host
umount -l /run/host
rmdir /run/host
mount --make-rshared /

for systemd in /usr/lib/systemd/systemd /lib/systemd/systemd; do
    [ -x "$systemd" ] && exec env -i container=test SYSTEMD_UNIT_PATH=/run/units \
        PATH=/usr/sbin:/usr/bin:/sbin:/bin "$systemd" --system --unit=multi-user.target \
        --log-target=console --log-level=info --show-status=no
done
echo "no systemd is installed" >&2
exit 1
