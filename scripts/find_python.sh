#!/usr/bin/env bash
# Prints the first interpreter that is Python 3.11 or newer; PYTHON=… chooses one.
set -euo pipefail

for name in "${PYTHON:-python3}" python3.12 python3.11 python3.13 python3.14; do
    path=$(command -v "$name" 2>/dev/null) || continue
    if "$path" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        echo "$path"
        exit 0
    fi
done
echo "parley: no Python >= 3.11 found in PATH; install one, or say which: make PYTHON=/path/to/python3.12 …" >&2
exit 1
