#!/usr/bin/env bash
# Builds the RPM from a source distribution and its wheel: rpm.sh DIST OUTPUT [PYTHON [RELEASE]]
#
# For the system, and the Python (/usr/bin/python3.11), on which it runs: rpm-build and that Python's
# venv are needed.
set -euo pipefail
dist=$(realpath "$1") output=$(realpath "$2") python=${3:-/usr/bin/python3.11} release=${4:-1}
source=("$dist"/gwmond-*.tar.gz)
version=${source##*/gwmond-}
version=${version%.tar.gz}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/SOURCES"
cp "$dist"/gwmond-*.tar.gz "$dist"/gwmond-*.whl "$work/SOURCES"
tar -xzf "${source[0]}" -C "$work" --strip-components=3 "gwmond-$version/packaging/rpm/gwmond.spec"
rpmbuild -bb --quiet --define "_topdir $work" --define "gwmond_version $version" \
    --define "gwmond_release $release" --define "gwmond_python $python" "$work/gwmond.spec"
mv "$work"/RPMS/*/*.rpm "$output"
