"""Child processes that can be found again: who they are, whether they still live, how they are ended."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from producer import tether

_START_TIME_FIELD = 19  # Of /proc/PID/stat, counted behind the command's closing parenthesis.
_LOG_TAIL_BYTES = 16 << 10


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """A process id with the time the process was started, since ids are used again."""

    pid: int
    started: str

    @classmethod
    def of(cls, pid: int) -> Self | None:
        """Who has `pid` now; None when nobody has."""
        started = _start_time(pid)
        return None if started is None else cls(pid, started)

    @property
    def is_alive(self) -> bool:
        """Whether this very process still runs."""
        return _start_time(self.pid) == self.started

    def kill_group(self) -> None:
        """Kill the process and its group at once; no error when it is gone."""
        if self.is_alive:
            signal_group(self.pid, signal.SIGKILL)


def tethered(command: Sequence[str], *, when_parent_dies: signal.Signals) -> list[str]:
    """The command line that runs `command` so that it gets a signal when this process dies, even by kill -9."""
    return [sys.executable, "-IS", tether.__file__, str(os.getpid()), str(int(when_parent_dies)), *command]


def signal_group(pid: int, number: signal.Signals) -> None:
    """Signal the process group that `pid` leads; no error when it is gone."""
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def last_lines(path: Path, count: int) -> str:
    """The end of a child's log, for an error message; empty when there is none."""
    try:
        with path.open("rb") as log:
            log.seek(max(log.seek(0, os.SEEK_END) - _LOG_TAIL_BYTES, 0))
            return "\n".join(log.read().decode(errors="replace").splitlines()[-count:])
    except OSError:
        return ""


def _start_time(pid: int) -> str | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except FileNotFoundError:
        return _start_time_by_ps(pid) if not Path("/proc/self").exists() else None
    except (OSError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else fields[_START_TIME_FIELD]


def _start_time_by_ps(pid: int) -> str | None:
    said = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return said.stdout.strip() or None
