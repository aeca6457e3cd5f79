"""The worker's life on the pool's loop: opened before the first task, drained and closed after the last."""

import gc
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import structlog

from jobs.job import JobReference
from workers.draining import Draining
from workers.execute import execute
from workers.settings import WorkerSettings
from workers.worker import Worker

log = structlog.get_logger(__name__)


def _look_for_garbage_less_often() -> None:
    """Spare the collector what was imported, and let more pile up: conversations make few cycles."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


@dataclass(slots=True)
class WorkerLifespan:
    """What the pool hosts, and the way from a task to the worker."""

    settings: WorkerSettings
    draining: Draining = field(default_factory=Draining)
    worker: Worker | None = None

    @property
    def drain_seconds(self) -> float:
        """Return how long conversations may take to reach their next yield."""
        return self.settings.drain_seconds

    def start_draining(self) -> None:
        """Ask every conversation to stop at its next yield."""
        self.draining.begin()

    @asynccontextmanager
    async def hosted(self) -> AsyncIterator[None]:
        """Open the worker for as long as the pool runs."""
        _look_for_garbage_less_often()
        async with Worker.open(self.settings, os.environ, self.draining) as self.worker:
            yield

    async def execute(self, job: JobReference) -> str:
        """Run one job. Called by the task, on the pool's loop."""
        if self.worker is None:
            raise RuntimeError(
                "the worker is not open: start it with Celery's own command, `celery -A workers.app worker`"
            )
        outcome = await execute(job, self.worker)
        self.worker.metrics.outcomes[outcome.partition(":")[0]] += 1
        return outcome
