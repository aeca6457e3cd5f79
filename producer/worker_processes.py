"""The worker processes of an embedded run: started, watched, started again when they die, drained at the end."""

import asyncio
import os
import signal
import sys
import time
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from producer import worker_entry
from producer.errors import WorkersKeepDying
from producer.processes import last_lines, signal_group, tethered
from producer.terminal import say

_QUICK_DEATH_SECONDS = 15.0
_MAX_QUICK_DEATHS = 4
_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 15.0
_SHOWN_LOG_LINES = 15


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """What every worker process of a run is started with."""

    run_id: str
    queues: Sequence[str]
    concurrency: int
    environment: Mapping[str, str]
    log_folder: Path
    module_folders: Sequence[Path] = ()
    log_level: str = "info"

    def command(self, number: int) -> list[str]:
        """Celery's own command, with the user's modules in reach."""
        folders = os.pathsep.join(str(folder) for folder in self.module_folders)
        return [
            *(sys.executable, "-P", worker_entry.__file__, folders),
            *("-A", "workers.app", "worker"),
            *("-Q", ",".join(self.queues), "-c", str(self.concurrency), "-n", f"{self.run_id}-{number}@%h"),
            *("--loglevel", self.log_level, "--without-gossip", "--without-mingle", "--without-heartbeat"),
        ]

    def log_path(self, number: int) -> Path:
        """Where the worker's output goes."""
        return self.log_folder / f"worker-{number}.log"


class WorkerProcesses:
    """`count` workers that are kept running until they are drained or killed."""

    def __init__(
        self,
        settings: WorkerSettings,
        count: int,
        *,
        on_start: Callable[[int, int], None] = lambda _number, _pid: None,
        on_death: Callable[[int], Awaitable[None]] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`on_start` gets number and process id of each worker that is started, `on_death` the id of one that died."""
        self._settings = settings
        self._count = count
        self._on_start = on_start
        self._on_death = on_death
        self._clock = clock
        self._running: dict[int, Process] = {}
        self._ending = False

    @property
    def pids(self) -> list[int]:
        """The process ids of the workers that run now."""
        return [process.pid for process in self._running.values()]

    async def keep_running(self) -> None:
        """Run the workers until `drain` or `kill`; `WorkersKeepDying` when one dies again and again at its start."""
        self._settings.log_folder.mkdir(parents=True, exist_ok=True)
        keepers = [asyncio.create_task(self._keep_one(number)) for number in range(1, self._count + 1)]
        try:
            await asyncio.gather(*keepers)
        finally:
            for keeper in keepers:
                keeper.cancel()
            await asyncio.gather(*keepers, return_exceptions=True)

    async def drain(self, timeout_seconds: float) -> bool:
        """Ask the workers to stop and wait for them; False when some had to be killed."""
        self._ending = True
        for pid in self.pids:
            signal_group(pid, signal.SIGTERM)
        waits = [asyncio.ensure_future(process.wait()) for process in self._running.values()]
        if not waits:
            return True
        _, late = await asyncio.wait(waits, timeout=timeout_seconds)
        if late:
            self.kill()
            await asyncio.wait(late)
        return not late

    def kill(self) -> None:
        """End the workers at once; what they had not made durable is made again by a later run."""
        self._ending = True
        for pid in self.pids:
            signal_group(pid, signal.SIGKILL)

    async def _keep_one(self, number: int) -> None:
        quick_deaths = 0
        while not self._ending:
            started = self._clock()
            pid, exit_code = await self._run_one(number)
            if self._ending:
                return
            if self._on_death is not None:
                await self._on_death(pid)
            lived_seconds = self._clock() - started
            quick_deaths = quick_deaths + 1 if lived_seconds < _QUICK_DEATH_SECONDS else 0
            if quick_deaths >= _MAX_QUICK_DEATHS:
                raise WorkersKeepDying(self._obituary(number, exit_code))
            say(f"worker {number} ended ({_how(exit_code)}) after {lived_seconds:.0f} s; starting it again")
            await asyncio.sleep(min(_FIRST_PAUSE_SECONDS * 2**quick_deaths, _LONGEST_PAUSE_SECONDS))

    async def _run_one(self, number: int) -> tuple[int, int]:
        command = tethered(self._settings.command(number), when_parent_dies=signal.SIGKILL)
        with self._settings.log_path(number).open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **self._settings.environment},
                start_new_session=True,  # Ctrl-C reaches this process only, which drains them.
            )
        self._running[number] = process
        self._on_start(number, process.pid)
        try:
            return process.pid, await process.wait()
        finally:
            if process.returncode is None:  # Cancelled: nobody else would end it.
                signal_group(process.pid, signal.SIGKILL)
                await process.wait()
            self._running.pop(number, None)

    def _obituary(self, number: int, exit_code: int) -> str:
        path = self._settings.log_path(number)
        return (
            f"worker {number} died {_MAX_QUICK_DEATHS} times right after its start ({_how(exit_code)}); "
            f"mend the cause and give the same command again. {path} ends with:\n{last_lines(path, _SHOWN_LOG_LINES)}"
        )


def _how(exit_code: int) -> str:
    return f"killed by signal {-exit_code}" if exit_code < 0 else f"exit code {exit_code}"
