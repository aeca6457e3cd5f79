"""Runs benchmarks by name, all of them without one: `python -m benchmarks [NAME…] [--rounds N] [--jobs N] …`."""

import argparse
import importlib.util
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from types import MappingProxyType

from benchmarks import (
    checkpoint,
    claim_settle,
    crowded,
    endurance,
    export,
    feeding,
    memory,
    model_call,
    record,
    scale,
    start,
    tool_call,
    w_plus,
)
from benchmarks.figure import Figure
from benchmarks.history import keep, surroundings
from benchmarks.options import Options

BENCHMARKS: Mapping[str, Callable[[Options], list[Figure]]] = MappingProxyType(
    {
        "model_call": model_call.measure,
        "tool_call": tool_call.measure,
        "claim_settle": claim_settle.measure,
        "checkpoint": checkpoint.measure,
        "record": record.measure,
        "feeding": feeding.measure,
        "start": start.measure,
        "export": export.measure,
        "w_plus": w_plus.measure,
        "crowded": crowded.measure,
        "memory": memory.measure,
        "scale": scale.measure,
        "endurance": endurance.measure,
    }
)
_NEEDED = ("aiohttp", "moto", "openai")


def main(arguments: Sequence[str]) -> int:
    """Run, print and keep; 1 when a limit is missed."""
    asked = _parser().parse_args(arguments)
    if missing := [name for name in _NEEDED if importlib.util.find_spec(name) is None]:
        print(f"missing: {', '.join(missing)}; install them: .venv/bin/pip install -e '.[bench]'", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that servers and folders are cleared away then too
    options = Options(**{each.name: getattr(asked, each.name) for each in fields(Options)})
    around = surroundings()
    print(f"{around['machine']}, python {around['python']}, {around['system']}, commit {around['commit']}")
    is_within = True
    for name in asked.names or BENCHMARKS:
        print(f"\n{name}: {sys.modules[BENCHMARKS[name].__module__].__doc__}", flush=True)
        figures = BENCHMARKS[name](options)
        for figure in figures:
            print(f"  {figure.line()}", flush=True)
        keep(name, figures, asdict(options))
        is_within = is_within and all(figure.is_within for figure in figures)
    return 0 if is_within else 1


def _parser() -> argparse.ArgumentParser:
    usual = Options()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *BENCHMARKS], metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--rounds", type=int, default=usual.rounds, help="how often each figure is taken (%(default)s)")
    parser.add_argument("--jobs", type=int, help="jobs, calls or records a round; each benchmark has its own default")
    parser.add_argument("--in-flight", type=int, default=usual.in_flight, help="at once (%(default)s)")
    parser.add_argument("--store", choices=("s3", "folder"), default=usual.store, help="where w_plus writes to")
    parser.add_argument("--by-hand", type=int, help="conversations a round of those that w_plus is compared with")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
