"""How long one waits: for `parley --help`, and for an embedded run of ten conversations of W."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.children import ROOT
from benchmarks.figure import Figure
from benchmarks.options import Options
from benchmarks.servers import PARLEY, mock_model
from benchmarks.workload import write_files

HELP_LIMIT_SECONDS = 0.5
RUN_LIMIT_SECONDS = 6.0
_JOBS = 10


def measure(options: Options) -> list[Figure]:
    """Wall seconds, as a person at the keyboard has them: other programs on this machine lengthen them."""
    parley = Path(sys.executable).with_name("parley")
    command = [str(parley)] if parley.exists() else list(PARLEY)
    helped = [_seconds([*command, "--help"])[0] for _ in range(options.rounds + 2)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with mock_model(folder) as base_url:
            ran = [_embedded(command, folder, base_url, number) for number in range(options.rounds)]
    return [
        Figure.plain("parley --help", helped, "s", HELP_LIMIT_SECONDS),
        Figure.plain(f"embedded run of {_JOBS} jobs of W", ran, "s", RUN_LIMIT_SECONDS),
    ]


def _embedded(command: Sequence[str], folder: Path, base_url: str, number: int) -> float:
    recipe, jobs = write_files(folder, base_url, _JOBS, name=f"w-{number}")
    results = str(folder / "results")
    seconds, said = _seconds([*command, "run", str(recipe), "--jobs", str(jobs), "--results", results, "--json"])
    summary = json.loads(said.strip().splitlines()[-1])
    if summary["ok"] != _JOBS:
        raise RuntimeError(f"the run did not play W to its end: {summary}")
    return seconds


def _seconds(command: Sequence[str]) -> tuple[float, str]:
    started = time.monotonic()
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, timeout=120)
    return time.monotonic() - started, done.stdout
