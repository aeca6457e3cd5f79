"""The worker: what every job of this process shares, opened on the pool's loop and closed after the last job."""

import asyncio
import itertools
import os
import secrets
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Self

import structlog

from jobs.errors import JobsError
from jobs.ledger import Ledger
from jobs.ledger.claims import Claim
from jobs.ledger.connection import PASSING
from workers.draining import Draining
from workers.heartbeat import Heartbeat
from workers.metrics import Metrics
from workers.open_runs import OpenRuns
from workers.reaper import Reaper
from workers.settings import WorkerSettings

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Worker:
    """One worker process. ``name`` begins the nonces of its claims and the names of its shards."""

    name: str
    settings: WorkerSettings
    ledger: Ledger
    runs: OpenRuns
    heartbeat: Heartbeat
    reaper: Reaper
    metrics: Metrics
    chance: Random
    draining: Draining = field(default_factory=Draining)
    _nonces: "itertools.count[int]" = field(default_factory=itertools.count)

    @classmethod
    @asynccontextmanager
    async def open(
        cls, settings: WorkerSettings, environment: Mapping[str, str], draining: Draining
    ) -> AsyncIterator[Self]:
        """Open the ledger and start heartbeat, sweep and metrics; at the end flush every record and close."""
        clock = asyncio.get_running_loop().time
        async with Ledger.open(
            settings.broker,
            lease_seconds=settings.lease_seconds,
            message_grace_seconds=settings.message_grace_seconds,
            patience_seconds=settings.broker_patience_seconds,
            socket_timeout_seconds=settings.socket_timeout_seconds,
            reap_lease_seconds=settings.reap_seconds,
        ) as ledger:
            name = worker_name(settings.worker_name)
            metrics = Metrics()
            runs = OpenRuns(ledger, settings, name, metrics.others, dict(environment))
            heartbeat = Heartbeat(ledger.claims, settings.heartbeat_seconds, clock)
            reaper = Reaper(ledger.sessions, runs, settings.teardown_seconds)
            worker = cls(name, settings, ledger, runs, heartbeat, reaper, metrics, Random(name), draining)
            async with asyncio.TaskGroup() as group:
                background = [
                    group.create_task(heartbeat.beat_forever()),
                    group.create_task(worker.sweep_forever()),
                    group.create_task(worker.reap_forever()),
                    group.create_task(metrics.watch_loop(clock, settings.heartbeat_file)),
                ]
                try:
                    yield worker
                finally:
                    await worker.reap()  # what the last jobs could not tear down, while the engines are open
                    await runs.close()
                    for task in background:
                        task.cancel()

    def next_nonce(self) -> str:
        """Name one attempt, uniquely among all workers ever."""
        return f"{self.name}-{next(self._nonces)}"

    def retry_delay_seconds(self, claim: Claim) -> float:
        """Return how long a job waits before its next attempt: doubling, with jitter, capped."""
        delay: float = self.settings.retry_delay_seconds * 2**claim.strikes
        return min(self.settings.retry_delay_cap_seconds, delay * self.chance.uniform(0.75, 1.25))

    async def sweep_forever(self) -> None:
        """Look every few seconds for what died or was lost, in every run nobody else looks through."""
        while True:
            await asyncio.sleep(self.settings.sweep_seconds)
            try:
                for run_id in await self.ledger.runs.active():
                    swept = await self.ledger.sweeping.sweep(run_id, self.name)
                    if swept.expired or swept.lost:
                        log.info("sent again", run=run_id, expired_claims=swept.expired, lost_messages=swept.lost)
            except (JobsError, *PASSING) as failure:
                log.warning("the sweep has to wait", cause=str(failure))

    async def reap_forever(self) -> None:
        """Look every few seconds for sessions whose holders are dead, and tear them down."""
        while True:
            await asyncio.sleep(self.settings.sweep_seconds)
            await self.reap()

    async def reap(self) -> None:
        """Look once."""
        try:
            await self.reaper.look()
        except (JobsError, *PASSING) as failure:
            log.warning("the reaper has to wait", cause=str(failure))


def worker_name(wanted: str | None) -> str:
    """Return a name that no other process, earlier or elsewhere, has: host, pid and a random part."""
    host = "".join(letter if letter.isalnum() else "-" for letter in (wanted or socket.gethostname()))[:40]
    return f"{host}-{os.getpid()}-{secrets.token_hex(3)}"
