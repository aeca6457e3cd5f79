"""The heartbeat: renews every claim of the process in one go, and brings back losses and cancellations."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import structlog

from jobs.errors import JobsError
from jobs.ledger.claims import Claim, Claims

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Lease:
    """A claim as its job sees it. It is lost when the ledger says so, or when nothing renewed it in time."""

    claim: Claim
    lease_seconds: float
    clock: Callable[[], float]
    renewed_at: float
    taken_away: bool = False
    is_cancelled: bool = False

    @property
    def is_lost(self) -> bool:
        """Say whether another attempt may work on the job already. A partitioned process answers by its own clock."""
        return self.taken_away or self.clock() - self.renewed_at > self.lease_seconds


@dataclass(slots=True)
class Heartbeat:
    """All live claims of the process, by run."""

    claims: Claims
    every_seconds: float
    clock: Callable[[], float]
    leases: dict[str, dict[int, Lease]] = field(default_factory=dict)
    lost: int = 0

    @contextmanager
    def keeping(self, claim: Claim) -> Iterator[Lease]:
        """Keep a claim alive for as long as the block runs."""
        lease = Lease(claim, self.claims.lease_seconds, self.clock, self.clock())
        of_run = self.leases.setdefault(claim.job.run_id, {})
        of_run[claim.job.index] = lease
        try:
            yield lease
        finally:
            if of_run.get(claim.job.index) is lease:
                del of_run[claim.job.index]
            if not of_run:
                self.leases.pop(claim.job.run_id, None)

    async def beat_forever(self) -> None:
        """Beat until cancelled."""
        while True:
            await asyncio.sleep(self.every_seconds)
            await self.beat()

    async def beat(self) -> None:
        """Renew every lease once. A broker that is away is tried again at the next beat."""
        for run_id, of_run in list(self.leases.items()):
            leases = list(of_run.values())
            asked_at = self.clock()
            try:
                renewal = await self.claims.renew(run_id, [lease.claim for lease in leases])
            except JobsError as failure:
                log.warning("claims could not be renewed", run=run_id, claims=len(leases), cause=str(failure))
                continue
            for lease in leases:
                lease.is_cancelled = renewal.cancelled
                if lease.claim.job.index in renewal.lost:
                    lease.taken_away = True
                else:
                    lease.renewed_at = asked_at
            self.lost += len(renewal.lost)
            if renewal.lost:
                log.warning("claims lost", run=run_id, jobs=sorted(renewal.lost)[:20], count=len(renewal.lost))
