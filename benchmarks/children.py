"""Child processes of a benchmark: started in their own group, watched through their output, ended by pid."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from producer.processes import last_lines, signal_group, tethered

ROOT = Path(__file__).resolve().parents[1]
_POLL_SECONDS = 0.05
_STOP_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Child:
    """A running process and the file that its output goes to."""

    process: "subprocess.Popen[bytes]"
    log: Path

    @property
    def pid(self) -> int:
        """The process id."""
        return self.process.pid

    @property
    def output(self) -> str:
        """What it said so far."""
        return self.log.read_text(errors="replace")

    def line_with(self, text: str, *, within_seconds: float = 60.0) -> str:
        """Wait for a line of output; RuntimeError when it does not come."""
        deadline = time.monotonic() + within_seconds
        while time.monotonic() < deadline:
            for line in self.output.splitlines():
                if text in line:
                    return line
            if self.process.poll() is not None:
                break
            time.sleep(_POLL_SECONDS)
        raise RuntimeError(f"no {text!r} in the output of {self.process.args!s:.200}:\n{last_lines(self.log, 20)}")

    def finish(self, *, within_seconds: float) -> str:
        """Wait for its end and return the last line it said; RuntimeError when it failed."""
        code = self.process.wait(within_seconds)
        if code != 0:
            raise RuntimeError(f"{self.process.args!s:.200} ended with {code}:\n{last_lines(self.log, 20)}")
        return last_lines(self.log, 1)


@contextmanager
def child(command: Sequence[str | Path], log: Path, environment: Mapping[str, str] | None = None) -> Iterator[Child]:
    """Run a command for the block; at its end the process gets SIGTERM, and later SIGKILL."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            tethered([str(part) for part in command], when_parent_dies=signal.SIGKILL),
            cwd=ROOT,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield Child(process, log)
    finally:
        if process.poll() is None:
            signal_group(process.pid, signal.SIGTERM)
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                signal_group(process.pid, signal.SIGKILL)
                process.wait()
