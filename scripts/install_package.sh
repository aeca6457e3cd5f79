#!/usr/bin/env bash
# Installs one Debian package where that is possible without asking; otherwise fails quietly.
# A service that the package would start is kept from starting: we want the program, not the daemon.
set -euo pipefail

[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || exit 1
export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
install() { timeout 300 apt-get install -y -qq --no-install-recommends "$1" >/dev/null 2>&1; }
install "$1" && exit 0
timeout 120 apt-get update -qq >/dev/null 2>&1 && install "$1"
