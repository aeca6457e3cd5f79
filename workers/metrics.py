"""Counters of a worker process and the lag of its event loop."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import structlog

log = structlog.get_logger(__name__)

PROBE_SECONDS = 0.25
LAG_WARNING_SECONDS = 1.0
TOUCH_SECONDS = 5.0


@dataclass(slots=True)
class Metrics:
    """What the process did; ``lag_most_seconds`` is the longest the loop was blocked."""

    outcomes: Counter[str] = field(default_factory=Counter)
    active_jobs: int = 0
    jobs_recording: int = 0
    lag_last_seconds: float = 0.0
    lag_most_seconds: float = 0.0

    def others(self) -> int:
        """Return how many conversations may add a record before those that wait for their shard are told."""
        return self.active_jobs - self.jobs_recording

    @contextmanager
    def working(self) -> Iterator[None]:
        """Count a job as active while the block runs."""
        self.active_jobs += 1
        try:
            yield
        finally:
            self.active_jobs -= 1

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Count a job as waiting for its shard while the block runs."""
        self.jobs_recording += 1
        try:
            yield
        finally:
            self.jobs_recording -= 1

    async def watch_loop(self, clock: Callable[[], float], heartbeat_file: Path | None) -> None:
        """Measure the loop's lag and touch the heartbeat file, until cancelled."""
        touched = float("-inf")
        while True:
            due = clock() + PROBE_SECONDS
            await asyncio.sleep(PROBE_SECONDS)
            now = clock()
            self.lag_last_seconds = max(0.0, now - due)
            self.lag_most_seconds = max(self.lag_most_seconds, self.lag_last_seconds)
            if self.lag_last_seconds > LAG_WARNING_SECONDS:
                log.warning("the event loop was blocked", seconds=round(self.lag_last_seconds, 2))
            if heartbeat_file is not None and now - touched >= TOUCH_SECONDS:
                touched = now
                await asyncio.to_thread(_touch, heartbeat_file)


def _touch(path: Path) -> None:
    try:
        path.touch()
    except OSError as failure:
        log.warning("the heartbeat file could not be touched", path=str(path), cause=str(failure))
