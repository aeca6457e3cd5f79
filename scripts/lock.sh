#!/usr/bin/env bash
# Writes requirements.lock: every package of the image with its hashes, for the image's Python and platform.
# No registry is named in it, so that it can be installed from any mirror.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v .venv/bin/uv >/dev/null || .venv/bin/python -m pip install --quiet 'uv>=0.9'
.venv/bin/uv pip compile pyproject.toml --extra flower \
    --python-version 3.12 --python-platform x86_64-manylinux_2_28 \
    --generate-hashes --no-header --no-emit-index-url --no-emit-find-links --no-annotate --quiet \
    --output-file requirements.lock
sed -i '1i # Made by `make lock` from pyproject.toml for the image (Python 3.12, Linux x86-64); do not edit.' requirements.lock
grep -c -- '==' requirements.lock | xargs -I{} echo "requirements.lock: {} packages"
