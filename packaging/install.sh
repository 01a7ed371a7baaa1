#!/bin/sh
# Puts all files of the Debian and the RPM package below a directory:
#
#   packaging/install.sh ROOT [PYTHON]
#
# Run in an unpacked source distribution, beside whose files lies its wheel.  Packages of
# requirements-run.lock come from PyPI (or from where PIP_FIND_LINKS and PIP_NO_INDEX say), as wheels
# with the hashes that are locked.  PYTHON (/usr/bin/python3) is the one that will run gwmond; it has
# to have venv.
set -eu
root=$1 python=${2:-/usr/bin/python3}
prefix=/usr/lib/gwmond
environment=$root$prefix

umask 022
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -m venv "$work/pip"
"$python" -m venv --without-pip "$environment"
install() {
    "$work/pip/bin/python" -m pip --python "$environment/bin/python" --disable-pip-version-check \
        --quiet --no-input install --no-compile --no-warn-script-location "$@"
}
install --require-hashes --only-binary :all: --requirement requirements-run.lock
install --no-deps ./gwmond-*.whl

# Only gwmond is to be run from here, at another place than this; nobody runs others' tests.
find "$environment/bin" ! -type d ! -name gwmond ! -name 'python*' -delete
rm -rf "$environment/include" "$environment/.gitignore"
find "$environment/lib" -type d -name tests -prune -exec rm -rf {} +
find "$environment" -name direct_url.json -delete
sed -i "s|$environment|$prefix|g" "$environment/bin/gwmond" "$environment/pyvenv.cfg"
# Packages set the times of files, so bytecode does not depend on them.
"$environment/bin/python" -m compileall -q -j 0 --invalidation-mode unchecked-hash \
    -s "$root" -p / "$environment/lib" >/dev/null || true # templates of other packages are no code

# What the wheel has for the system goes where the system looks.
mkdir -p "$root/usr/bin" "$root/usr/share" "$root/etc/gwmond" "$root/usr/lib/systemd/system" \
    "$root/usr/lib/sysusers.d"
cp -R "$environment/share/." "$root/usr/share"
rm -rf "$environment/share" "$root/usr/share/gwmond/systemd"
ln -s ../lib/gwmond/bin/gwmond "$root/usr/bin/gwmond"
cp etc/gwmond.toml "$root/etc/gwmond/gwmond.toml"
mkdir -m 0700 "$root/etc/gwmond/tokens.d"
# The unit of the package: its own user, which the package makes, and its own path.
{
    echo '# gwmond as a system service.'
    sed -e '1,2d' -e '3,/^#$/d' -e 's|^ExecStart=/opt/gwmond/bin/|ExecStart=/usr/bin/|' \
        -e 's|^DynamicUser=yes$|DynamicUser=no|' systemd/gwmond.service
} >"$root/usr/lib/systemd/system/gwmond.service"
echo 'u gwmond - "gwmond" /var/lib/gwmond' >"$root/usr/lib/sysusers.d/gwmond.conf"
