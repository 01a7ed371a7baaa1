#!/usr/bin/env bash
# Makes sure that there is a Debian trixie in which packages of gwmond are built and installed
# (tests/packaging/debian.py): a directory of its own with dh, venv and systemd (about 550 MB, a
# minute). Tests work on copies. Safe to run again: what is there already is left alone.
# tests/pool/debian.sh says where it goes.
set -euo pipefail

what=packaging
. "$(dirname "$0")/../pool/debian.sh"
debian '' debhelper python3-venv systemd
say "done: $(chroot "$root" dpkg-query --show debhelper)"
