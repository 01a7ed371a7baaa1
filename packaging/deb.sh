#!/usr/bin/env bash
# Builds the Debian package from a source distribution and its wheel: deb.sh DIST OUTPUT
#
# For the Debian, and the Python, on which it runs: debhelper and python3-venv are needed, but no
# compiler (which dpkg-buildpackage would ask for).
set -euo pipefail
dist=$(realpath "$1") output=$(realpath "$2")
source=("$dist"/gwmond-*.tar.gz) wheel=("$dist"/gwmond-*.whl)
version=${source##*/gwmond-}
version=${version%.tar.gz}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tar -xzf "${source[0]}" -C "$work"
cd "$work/gwmond-$version"
cp "${wheel[0]}" .
cp -R packaging/debian debian
cat >debian/changelog <<END
gwmond ($version) unstable; urgency=medium

  * See /usr/share/doc/gwmond/changelog.gz.

 -- The gwmond developers <gwmond@example.org>  $(date -R -r pyproject.toml)
END
dpkg-buildpackage --build=binary --unsigned-source --unsigned-changes --no-pre-clean \
    --no-check-builddeps
mv "$work"/*.deb "$output"
