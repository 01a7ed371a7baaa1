#!/usr/bin/env bash
# Writes requirements.lock (what tests and CI install) and requirements-lowest.lock (the lowest
# versions that pyproject.toml allows), both with hashes and for all versions of Python from 3.11 on.
# $1 is a Python in which uv may be installed.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=$1
"$python" -m pip --quiet install 'uv>=0.5'

lock() {
    "$python" -m uv --quiet pip compile --universal --python-version 3.11 --all-extras \
        --generate-hashes --no-annotate --custom-compile-command 'make lock' "${@:2}" \
        --output-file "$1" pyproject.toml
}

lock requirements.lock --upgrade
lock requirements-lowest.lock --upgrade --resolution lowest-direct
