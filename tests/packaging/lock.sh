#!/usr/bin/env bash
# Writes requirements.lock (what tests and CI install), requirements-run.lock (its part which gwmond
# runs with: what packages install) and requirements-lowest.lock (the lowest versions that
# pyproject.toml allows), all with hashes and for all versions of Python from 3.11 on; and the versions
# of the backends that tests send traces to (tests/traces/backends).
# $1 is a Python in which uv may be installed; further arguments are uv's, "--upgrade" by default.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=$1
shift
[ $# -gt 0 ] || set -- --upgrade
"$python" -m pip --quiet install 'uv>=0.5'

lock() {
    "$python" -m uv --quiet pip compile --universal --python-version 3.11 \
        --generate-hashes --no-annotate --custom-compile-command 'make lock' "${@:2}" \
        --output-file "$1" pyproject.toml
}

lock requirements.lock --all-extras "$@"
lock requirements-lowest.lock --extra parquet --extra postgresql --extra test "$@" --resolution lowest-direct
lock requirements-run.lock --extra parquet --extra postgresql --constraint requirements.lock --upgrade

# Backends of traces that tests run, each in an environment of its own; without hashes, which would be
# thousands.
backend() {
    echo "$2" | "$python" -m uv --quiet pip compile --universal --python-version 3.11 --no-annotate \
        --custom-compile-command 'make lock' "${@:3}" --output-file "tests/traces/backends/$1.txt" -
}
backend phoenix arize-phoenix "$@"
backend mlflow mlflow "$@"
