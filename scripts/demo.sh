#!/usr/bin/env bash
# Runs the weather example embedded, then shows one conversation and where everything lies.
set -euo pipefail
cd "$(dirname "$0")/.."

run_id="weather-$(date -u +%Y%m%d-%H%M%S)-$$"
.venv/bin/parley run examples/weather/recipe.yaml --jobs examples/weather/jobs.jsonl --results runs --run-id "$run_id"

echo
echo "One of the conversations (parley show runs/$run_id 0):"
echo
.venv/bin/parley show "runs/$run_id" 0
echo
echo "The run lies in runs/$run_id: its shards in data/ (one JSON line a conversation, zstd)."
echo "  .venv/bin/parley status runs/$run_id          the summary again"
echo "  .venv/bin/parley show   runs/$run_id 7        another conversation"
echo "  .venv/bin/parley export runs/$run_id --help   as training data"
