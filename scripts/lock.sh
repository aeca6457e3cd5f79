#!/usr/bin/env bash
# Writes the locks of the image: every package with the hashes of all its files. requirements.lock is what Parley runs
# on, requirements-build.lock what builds its wheel. No registry is named in them: any mirror will do.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v .venv/bin/uv >/dev/null || .venv/bin/python -m pip install --quiet 'uv>=0.9'

lock() {
    local file=$1
    shift
    .venv/bin/uv pip compile "$@" --universal --python-version 3.12 --generate-hashes \
        --no-header --no-emit-index-url --no-emit-find-links --no-annotate --quiet --output-file "$file"
    # shellcheck disable=SC2016 # the backquotes are text
    sed -i '1i # Made by `make lock` for the image (Python 3.12 and newer); do not edit.' "$file"
    echo "$file: $(grep -c '==' "$file") packages"
}

lock requirements.lock pyproject.toml --extra flower
grep -oE '"hatchling[^"]*"' pyproject.toml | head -n 1 | tr -d '"' | lock requirements-build.lock -
