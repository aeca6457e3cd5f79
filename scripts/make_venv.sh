#!/usr/bin/env bash
# Makes .venv with Parley (editable) and everything its tests need; says nothing more than one line unless it fails.
set -euo pipefail
cd "$(dirname "$0")/.."

python=$(scripts/find_python.sh)
log=$(mktemp)
trap 'rm -f "$log"' EXIT

fail() {
    tail -n 30 "$log" >&2
    echo "parley: $1" >&2
    exit 1
}

make_venv() { "$python" -m venv .venv >"$log" 2>&1 && .venv/bin/python -m pip --version >>"$log" 2>&1; }

if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    echo "Making .venv with $("$python" --version) …"
    rm -rf .venv
    if ! make_venv; then
        # Debian keeps venv's pip in a package of its own.
        if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
            { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv; } >>"$log" 2>&1 || true
        fi
        rm -rf .venv
        make_venv || fail "$python cannot make a virtual environment; on Debian and Ubuntu: apt install python3-venv"
    fi
fi

echo "Installing Parley and the parts of its tests into .venv (a minute or two, once) …"
.venv/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[test]' >"$log" 2>&1 ||
    fail "pip could not install '.[test]'; the lines above say why (is a package index reachable?)"
