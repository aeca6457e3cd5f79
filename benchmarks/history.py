"""Keeps the figures of every run: one JSON line a benchmark in history.jsonl, with machine and versions."""

import os
import platform
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import orjson

from benchmarks.figure import Figure

HISTORY = Path(__file__).with_name("history.jsonl")
_PACKAGES = (
    *("parley", "celery", "kombu", "redis", "hiredis", "uvloop", "pyreqwest", "orjson", "obstore", "zstandard"),
    *("pydantic", "openai", "httpx2", "aiohttp", "moto"),
)


def keep(benchmark: str, figures: Sequence[Figure], options: dict[str, Any], *, path: Path = HISTORY) -> None:
    """Append one line."""
    line = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "benchmark": benchmark,
        "options": options,
        "figures": [figure.to_dict() for figure in figures],
        "load": round(os.getloadavg()[0], 2),
        **surroundings(),
    }
    with path.open("ab") as history:
        history.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))


@cache
def surroundings() -> dict[str, Any]:
    """Return machine, versions, and the commit whose code ran (with a + where files were changed since)."""
    return {
        "commit": _said_by_git("describe", "--always", "--dirty=+"),
        "machine": f"{os.cpu_count()} x {_processor()}",
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": {name: found for name in _PACKAGES if (found := _version(name))},
    }


def _said_by_git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=HISTORY.parent, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
