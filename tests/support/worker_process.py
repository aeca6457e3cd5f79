"""Real worker processes for tests: started with Celery's own command, watched through their logs, killed by pid."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class WorkerProcess:
    """One `celery worker` in a process group of its own."""

    process: subprocess.Popen[str]
    lines: list[str] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)
    reader: threading.Thread = field(default_factory=threading.Thread)

    def read(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as output:
            for line in output:
                with self.changed:
                    self.lines.append(line)
                    self.changed.notify_all()
        with self.changed:
            self.changed.notify_all()

    def wait_for_line(self, text: str, seconds: float = 60.0) -> str:
        def found() -> str | None:
            return next((line for line in self.lines if text in line), None)

        with self.changed:
            self.changed.wait_for(lambda: found() is not None or self.process.poll() is not None, seconds)
            line = found()
        assert line is not None, f"no {text!r} in the worker's output:\n{''.join(self.lines)}"
        return line

    @property
    def output(self) -> str:
        return "".join(self.lines)

    def kill(self) -> None:
        """End with kill -9 the whole group, as an out-of-memory killer or a lost node does it."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(20)

    def terminate(self, seconds: float = 60.0) -> int:
        """SIGTERM, and the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)


def start_worker(
    broker: str,
    *,
    app: str = "workers.app",
    queues: str = "conversations",
    concurrency: int = 50,
    environment: Mapping[str, str] | None = None,
    name: str = "test@%h",
) -> WorkerProcess:
    """Start a worker; it need not be ready yet."""
    process = subprocess.Popen(
        [
            sys.executable, "-m", "celery", "-A", app, "worker", "-Q", queues, "-c", str(concurrency), "-n", name,
            "--without-mingle", "--without-gossip", "--loglevel", "INFO",
        ],
        cwd=ROOT,
        env={**os.environ, "PARLEY_BROKER": broker, "PYTHONUNBUFFERED": "1", **(environment or {})},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )  # fmt: skip
    worker = WorkerProcess(process)
    worker.reader = threading.Thread(target=worker.read, daemon=True)
    worker.reader.start()
    return worker


@contextmanager
def worker_process(broker: str, *, ready: str = "worker ready", **options: object) -> Iterator[WorkerProcess]:
    """A ready worker for the block; killed at its end if it still lives."""
    worker = start_worker(broker, **options)  # type: ignore[arg-type]
    try:
        worker.wait_for_line(ready)
        yield worker
    finally:
        if worker.process.poll() is None:
            worker.kill()
        worker.reader.join(20)
