"""One embedded run at a time: a lock file in the run's folder, which the kernel frees however its holder dies."""

import fcntl
import json
import os
import socket
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from producer.errors import RunLocked


class RunLock:
    """Holds `run.lock` while the block runs; `RunLocked` says who holds it already."""

    def __init__(self, folder: Path, run_id: str) -> None:
        self._path = folder / "run.lock"
        self._run_id = run_id
        self._file = -1

    def __enter__(self) -> Self:
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._file, 4096, 0)
            os.close(self._file)
            raise RunLocked(self._message(holder)) from None
        note = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%Y-%m-%d %H:%M:%S %z")}
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, json.dumps(note).encode(), 0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        os.close(self._file)

    def _message(self, holder: bytes) -> str:
        try:
            note = json.loads(holder)
            who = f"process {note['pid']} on {note['host']} (since {note['since']})"
        except (ValueError, TypeError, KeyError):
            who = "another process"
        return (
            f"run {self._run_id} is being made by {who}; wait for it, end it with Ctrl-C, "
            f"or look at it with: parley status {self._path.parent}"
        )
