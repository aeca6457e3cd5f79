"""The real parts a benchmark runs against, all on loopback: Redis, the model's stand-in, an S3 server, a worker."""

import re
import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import redis

from benchmarks.children import Child, child
from producer.private_redis import find_server

PARLEY = (sys.executable, "-c", "from producer.cli import main; main()")
BUCKET = "benchmarks"
_READY_SECONDS = 20.0
_ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+\S*")


@dataclass(frozen=True, slots=True)
class RedisServer:
    """A Redis of the benchmark's own, durable to a second as a real one is."""

    port: int
    pid: int

    @property
    def url(self) -> str:
        """What workers take as their broker."""
        return f"redis://127.0.0.1:{self.port}/0"

    def cpu_seconds(self) -> float:
        """Return what the server says it has used."""
        facts = self._info("cpu")
        return float(facts["used_cpu_user"]) + float(facts["used_cpu_sys"])

    def used_bytes(self) -> int:
        """Return the memory its data take."""
        return int(self._info("memory")["used_memory"])

    def ping(self) -> None:
        """Ask for a sign of life."""
        with redis.Redis(port=self.port) as client:
            client.ping()

    def _info(self, section: str) -> dict[str, Any]:
        with redis.Redis(port=self.port) as client:
            facts: dict[str, Any] = client.info(section)
        return facts


@contextmanager
def redis_server(folder: Path) -> Iterator[RedisServer]:
    """Run a Redis in a folder."""
    folder.mkdir(parents=True)
    port = _free_port()
    command: list[str | Path] = [find_server(), "--port", str(port), "--bind", "127.0.0.1", "--dir", folder]
    durable = ["--appendonly", "yes", "--appendfsync", "everysec", "--save", ""]
    with child([*command, *durable], folder / "redis.log") as process:
        server = RedisServer(port, process.pid)
        deadline = time.monotonic() + _READY_SECONDS
        while True:
            try:
                server.ping()
                break
            except redis.RedisError:
                if time.monotonic() > deadline or process.process.poll() is not None:
                    raise
                time.sleep(0.02)
        yield server


@contextmanager
def mock_model(folder: Path, *, latency_ms: float = 200, turns: int = 5) -> Iterator[str]:
    """Run `parley mock-model`; yields its base URL."""
    command = [*PARLEY, "mock-model", "--port", "0", "--latency-ms", str(latency_ms), "--turns", str(turns)]
    with child(command, folder / f"mock-model-{latency_ms:g}.log") as process:
        found = _ADDRESS.search(process.line_with("http://127.0.0.1:"))
        assert found is not None
        yield found[0]


@contextmanager
def rest_server(folder: Path) -> Iterator[str]:
    """Run a REST backend that answers at once; yields its URL."""
    with child([sys.executable, "-m", "benchmarks.rest_server"], folder / "rest.log") as process:
        found = _ADDRESS.search(process.line_with("http://127.0.0.1:"))
        assert found is not None
        yield found[0]


@contextmanager
def mcp_server(folder: Path) -> Iterator[str]:
    """Run an MCP server that answers at once; yields its URL."""
    with child([sys.executable, "-m", "benchmarks.mcp_server"], folder / "mcp.log") as process:
        found = _ADDRESS.search(process.line_with("http://127.0.0.1:"))
        assert found is not None
        yield found[0]


@contextmanager
def s3_server(folder: Path) -> Iterator[dict[str, str]]:
    """Run moto's S3 with one empty bucket; yields the environment that reaches it."""
    log = folder / "moto.log"
    command: list[str | Path] = [Path(sys.executable).with_name("moto_server"), "-H", "127.0.0.1", "-p", "0"]
    with child([sys.executable, *command], log) as process:
        found = _ADDRESS.search(process.line_with("Running on http://127.0.0.1:"))
        assert found is not None
        with urlopen(Request(f"{found[0]}/{BUCKET}", method="PUT")):
            yield {
                "AWS_ACCESS_KEY_ID": "benchmarks",
                "AWS_SECRET_ACCESS_KEY": "not-a-secret",
                "AWS_REGION": "us-east-1",
                "AWS_ENDPOINT_URL": found[0],
            }


@contextmanager
def worker(
    broker: str, folder: Path, *, in_flight: int, environment: Mapping[str, str], number: int = 1
) -> Iterator[Child]:
    """Run one worker process with Celery's own command; yields once it is ready."""
    command = [sys.executable, "-m", "celery", "-A", "workers.app", "worker", "-Q", "conversations"]
    named: Sequence[str] = ["-c", str(in_flight), "-n", f"benchmark-{number}@%h", "--loglevel", "INFO"]
    with child(
        [*command, *named], folder / f"worker-{number}.log", {**environment, "PARLEY_BROKER": broker}
    ) as process:
        process.line_with("worker ready")
        yield process


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
