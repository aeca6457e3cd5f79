"""The runs that this process works on, each opened once however many of its jobs arrive together."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from jobs.errors import RunUnknown
from jobs.ledger import Ledger
from workers.open_run import OpenRun
from workers.settings import WorkerSettings

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class OpenRuns:
    """Opens runs by id. A failure to open is not kept: the next job tries again."""

    ledger: Ledger
    settings: WorkerSettings
    writer: str
    others: Callable[[], int]
    environment: dict[str, str]
    runs: dict[str, "asyncio.Task[OpenRun]"] = field(default_factory=dict)

    async def open(self, run_id: str) -> OpenRun:
        """Return the open run. Raises what reading its files or opening its engines raised."""
        task = self.runs.get(run_id)
        if task is None or (task.done() and (task.cancelled() or task.exception())):
            task = self.runs[run_id] = asyncio.create_task(self._open(run_id))
        return await asyncio.shield(task)

    async def _open(self, run_id: str) -> OpenRun:
        info = await self.ledger.runs.info(run_id)
        if info is None:
            raise RunUnknown(f"run {run_id} is not in the ledger; submit it again to resume it")
        run = await OpenRun.open(
            run_id,
            info.results,
            settings=self.settings,
            writer=self.writer,
            others=self.others,
            environment=self.environment,
            cache=self.ledger.cache,
        )
        log.info("run opened", run=run_id, jobs=run.manifest.jobs, results=run.store.url)
        return run

    async def flush(self) -> None:
        """Write every buffered record now."""
        for task in list(self.runs.values()):
            if task.done() and not task.cancelled() and task.exception() is None:
                await task.result().sink.flush()

    async def close(self) -> None:
        """Close every run that was opened; one that fails to close does not keep the others open."""
        for run_id, task in self.runs.items():
            try:
                await (await task).close()
            except asyncio.CancelledError:
                raise
            except Exception:  # each run is fenced from the others
                log.warning("run was not closed cleanly", run=run_id, exc_info=True)
        self.runs.clear()
