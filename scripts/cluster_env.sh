#!/usr/bin/env bash
# Prints the secrets that compose.yaml wants, made up anew: scripts/cluster_env.sh > .env
set -euo pipefail

secret() { head -c 24 /dev/urandom | base64 | tr -d '+/=\n'; }

cat <<EOF
PARLEY_WORKER_PASSWORD=$(secret)
PARLEY_FEEDER_PASSWORD=$(secret)
PARLEY_FLOWER_PASSWORD=$(secret)
FLOWER_LOGIN=parley
FLOWER_PASSWORD=$(secret)
FLOWER_COOKIE_SECRET=$(secret)
STORE_ACCESS_KEY=$(secret)
STORE_SECRET_KEY=$(secret)
EOF
