"""The process of a stdio server: started from an argument list, with a clean environment; ended and reaped for sure."""

import asyncio
import contextlib
import os
import signal
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

import structlog

from engines.mcp.text import printable

log = structlog.get_logger(__name__)

INHERITED = ("PATH", "HOME", "LANG")
_GRACE_SECONDS = 2.0
_LOOK_SECONDS = 0.05
_CHUNK_BYTES = 64 << 10
_STDERR_LINES_KEPT = 5
_STDERR_LINES_LOGGED = 1000
_STDERR_LINE_CHARS = 500


@dataclass(frozen=True, slots=True)
class Command:
    """What is run: an argument list, never a shell's text; `environment` is all it knows besides PATH, HOME, LANG."""

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """The program alone: the arguments may hold secrets."""
        return self.argv[0].rpartition("/")[2]

    def full_environment(self) -> dict[str, str]:
        """Return the child's whole environment."""
        inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
        return {**inherited, **self.environment}


class Child:
    """One running process. Its stderr is always drained, or it would stop once the pipe is full."""

    def __init__(self, command: Command, process: asyncio.subprocess.Process) -> None:
        self._command = command
        self._process = process
        self._is_stopped = False
        self._said: deque[str] = deque(maxlen=_STDERR_LINES_KEPT)
        self._drained = asyncio.create_task(self._drain_stderr(), name=f"stderr of {command.name}")

    @classmethod
    async def start(cls, command: Command) -> Self:
        """Start it in a process group of its own; OSError when there is no such program."""
        process = await asyncio.create_subprocess_exec(
            *command.argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=command.full_environment(),
            start_new_session=True,
        )
        return cls(command, process)

    async def read(self) -> bytes:
        """Return the next bytes of its stdout; b"" when it has closed it."""
        assert self._process.stdout is not None  # noqa: S101 - asked for when it was started
        return await self._process.stdout.read(_CHUNK_BYTES)

    async def write(self, data: bytes) -> None:
        """Write to its stdin; ConnectionError when it does not listen any more."""
        assert self._process.stdin is not None  # noqa: S101
        self._process.stdin.write(data)
        await self._process.stdin.drain()

    async def epitaph(self) -> str:
        """Return how it ended and the last it said, waiting a moment for both: `the process npx exited with 1 (…)`."""
        ended = await self._exits_within(1.0)
        await asyncio.wait({self._drained}, timeout=0.2)
        how = f"exited with {self._process.returncode}" if ended else "closed its output"
        said = " | ".join(self._said)
        return f"the process {self._command.name} {how}" + (f" (stderr: {said})" if said else "")

    async def stop(self) -> None:
        """Close its stdin, wait, then TERM, then KILL, to its whole group; returns when it is reaped."""
        if self._is_stopped:
            return  # Its number may be another process's by now.
        self._is_stopped = True
        try:
            if self._process.stdin is not None:
                self._process.stdin.close()
            if not await self._exits_within(_GRACE_SECONDS):
                self._signal(signal.SIGTERM)
                await self._exits_within(_GRACE_SECONDS)
        finally:
            # Also when the wait was cancelled, and for grandchildren that outlive the child.
            self._signal(signal.SIGKILL)
            await self._exits_within(_GRACE_SECONDS)
            self._drained.cancel()
            await asyncio.wait({self._drained})
            self._close_pipes()

    async def _exits_within(self, seconds: float) -> bool:
        """Look at the exit status itself: `wait()` also waits for pipes, which a grandchild may hold open."""
        deadline = asyncio.get_running_loop().time() + seconds
        while self._process.returncode is None:
            if asyncio.get_running_loop().time() >= deadline:
                return False
            waiting = asyncio.ensure_future(self._process.wait())
            await asyncio.wait({waiting}, timeout=_LOOK_SECONDS)
            waiting.cancel()
        return True

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _close_pipes(self) -> None:
        """Let the pipes go even when a grandchild holds their other ends open."""
        transport = getattr(self._process, "_transport", None)
        if transport is not None:
            transport.close()

    async def _drain_stderr(self) -> None:
        """Keep the last lines, log the first thousand at debug, throw the rest away."""
        assert self._process.stderr is not None  # noqa: S101
        logged, unfinished = 0, ""
        while chunk := await self._process.stderr.read(_CHUNK_BYTES):
            *lines, unfinished = (unfinished + chunk.decode("utf-8", "replace")).split("\n")
            unfinished = unfinished[-_STDERR_LINE_CHARS:]
            for line in filter(None, (self._masked(printable(line, _STDERR_LINE_CHARS)).strip() for line in lines)):
                self._said.append(line)
                if (logged := logged + 1) <= _STDERR_LINES_LOGGED:
                    log.debug("an mcp server said", process=self._command.name, line=line)
        if unfinished.strip():
            self._said.append(self._masked(printable(unfinished, _STDERR_LINE_CHARS)).strip())

    def _masked(self, text: str) -> str:
        """Take the values of the child's own environment out of a text: some are secrets."""
        for value in self._command.environment.values():
            if len(value) >= 4:  # noqa: PLR2004 - shorter ones are words like "1" and "true"
                text = text.replace(value, "***")
        return text
