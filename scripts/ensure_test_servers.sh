#!/usr/bin/env bash
# Installs the servers and documents of tests/servers/, which nobody here wrote, into .venv/test-servers.
# Without npm, or without the servers, the tests that need them say that they were skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

FOLDER=.venv/test-servers
# Node brings its own authorities; behind a company's proxy the system knows one more.
SYSTEM_AUTHORITIES=/etc/ssl/certs/ca-certificates.crt

install_npm_servers() {
    local wanted=tests/servers/package.json installed=$FOLDER/.installed.json
    cmp --silent "$wanted" "$installed" && return
    command -v npm >/dev/null || scripts/install_package.sh npm || {
        echo "parley: no npm, so the tests with foreign servers are skipped; install Node.js >= 20" >&2
        return
    }
    mkdir -p "$FOLDER"
    cp "$wanted" "$FOLDER/package.json"
    [ -r "$SYSTEM_AUTHORITIES" ] && export NODE_EXTRA_CA_CERTS="${NODE_EXTRA_CA_CERTS:-$SYSTEM_AUTHORITIES}"
    npm install --prefix "$FOLDER" --no-package-lock --no-audit --no-fund --ignore-scripts --loglevel=error \
        --fetch-retries=2 --fetch-timeout=60000 --fetch-retry-maxtimeout=10000 >&2 || {
        echo "parley: npm could not install the foreign servers, so the tests with them are skipped" >&2
        return
    }
    cp "$wanted" "$installed" # Last: what is noted is whole.
}

# In an environment of their own: what they depend on must not decide what we do.
install_python_servers() {
    local wanted=tests/servers/requirements.txt installed=$FOLDER/.installed.txt
    cmp --silent "$wanted" "$installed" && return
    mkdir -p "$FOLDER"
    .venv/bin/python -m venv "$FOLDER/python"
    "$FOLDER/python/bin/python" -m pip install --quiet --disable-pip-version-check -r "$wanted" >&2 || {
        echo "parley: the Python servers could not be installed, so the tests with them are skipped" >&2
        return
    }
    cp "$wanted" "$installed"
}

install_npm_servers
install_python_servers
