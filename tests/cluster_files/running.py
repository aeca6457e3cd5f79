"""Runs a command of compose.yaml or k8s/base as a plain process, with the paths and addresses of this machine."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

DEADLINE_SECONDS = 60.0


@dataclass(slots=True)
class Running:
    """A process whose lines are read as they come."""

    process: "subprocess.Popen[str]"
    lines: list[str] = field(default_factory=list)
    news: threading.Condition = field(default_factory=threading.Condition)
    ended: bool = False

    @property
    def output(self) -> str:
        """All that it has said so far."""
        return "".join(self.lines)

    def wait_for(self, text: str) -> str:
        """Wait until a line has `text` in it, and return that line."""
        with self.news:
            self.news.wait_for(lambda: self.ended or any(text in line for line in self.lines), DEADLINE_SECONDS)
        said = [line for line in self.lines if text in line]
        assert said, f"never said {text!r}:\n{self.output}"
        return said[0]

    def stop(self) -> int:
        """Send SIGTERM, as Docker and Kubernetes do, and return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(DEADLINE_SECONDS)

    def read(self) -> None:
        """Read until the process closes its output."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self.news:
                self.lines.append(line)
                self.news.notify_all()
        with self.news:
            self.ended = True
            self.news.notify_all()


def environment_with(variables: Mapping[str, str], *folders: Path) -> dict[str, str]:
    """Return what a container would see: its own variables and programs, nothing of the person who runs the tests."""
    path = [*map(str, folders), str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"]
    return {"PATH": os.pathsep.join(path), "PYTHONUNBUFFERED": "1", "LANG": "C.UTF-8", **variables}


@contextmanager
def running(command: Sequence[str], environment: Mapping[str, str], folder: Path) -> Iterator[Running]:
    """Run a command; whatever happens, it and its children are gone afterwards."""
    program = shutil.which(command[0], path=environment["PATH"])
    assert program, f"{command[0]} is not on this machine"
    process = subprocess.Popen(
        [program, *command[1:]],
        cwd=folder, env=dict(environment), text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    one = Running(process)
    reader = threading.Thread(target=one.read, daemon=True)
    reader.start()
    try:
        yield one
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        reader.join(DEADLINE_SECONDS)
        if process.stdout is not None:
            process.stdout.close()
