"""CPU time and memory of a process with all its children, read from /proc."""

import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# Of /proc/PID/stat, counted behind the command's closing parenthesis.
_PARENT, _USER, _SYSTEM, _CHILDREN_USER, _CHILDREN_SYSTEM, _RESIDENT = 1, 11, 12, 13, 14, 21


def cpu_seconds(pid: int) -> float:
    """Return user and system time of the tree, of children that have ended too."""
    fields = [_USER, _SYSTEM, _CHILDREN_USER, _CHILDREN_SYSTEM]
    return sum(int(stat[each]) for stat in _tree(pid) for each in fields) / _TICKS_A_SECOND


def resident_bytes(pid: int) -> int:
    """Return the resident memory of the tree."""
    return sum(int(stat[_RESIDENT]) for stat in _tree(pid)) * _PAGE_BYTES


def _tree(root: int) -> list[list[str]]:
    """Return the stat fields of the process and of its descendants that live now."""
    stats = {
        int(entry.name): stat for entry in Path("/proc").iterdir() if entry.name.isdigit() and (stat := _stat(entry))
    }
    if root not in stats:
        raise ProcessLookupError(f"process {root} has ended; its log says why")
    found, waiting = list[list[str]](), [root]
    while waiting:
        pid = waiting.pop()
        found.append(stats[pid])
        waiting += [child for child, stat in stats.items() if int(stat[_PARENT]) == pid]
    return found


def _stat(entry: Path) -> list[str] | None:
    try:
        return (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:  # it ended meanwhile
        return None


@dataclass
class TreeWatch:
    """Samples memory and CPU time of a tree while the block runs; `cpu_seconds` is that of the last look."""

    pid: int
    every_seconds: float = 0.1
    samples: list[tuple[float, int]] = field(default_factory=list)
    cpu_seconds: float = 0.0
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    @property
    def most_bytes(self) -> int:
        """Return the peak."""
        return max((size for _, size in self.samples), default=0)

    def _watch(self) -> None:
        while not self._stop.wait(self.every_seconds):
            try:
                self.samples.append((time.monotonic(), resident_bytes(self.pid)))
                self.cpu_seconds = cpu_seconds(self.pid)
            except ProcessLookupError:
                return
