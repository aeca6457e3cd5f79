"""The reaper: tears down the sessions that dead processes and failed teardowns left on the backends."""

import asyncio
from dataclasses import dataclass

import structlog

from jobs.ledger.sessions import LeftSessions, OpenSession, Sessions
from workers.open_runs import OpenRuns
from workers.open_sessions import reaped

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Reaper:
    """Any worker's; the ledger sees to it that one at a time has a job's sessions."""

    ledger: Sessions
    runs: OpenRuns
    teardown_seconds: float

    async def look(self) -> int:
        """Take what is due and tear it down; returns how many jobs are rid of their sessions."""
        left = await self.ledger.take()
        return sum(await asyncio.gather(*(self._rid_of(each) for each in left)))

    async def _rid_of(self, left: LeftSessions) -> bool:
        """Tear a job's sessions down; what stays open is taken again later, by whoever looks then."""
        try:
            async with asyncio.timeout(self.ledger.reap_lease_seconds):
                gone = await self._torn_down(left)
                if gone:
                    await self.ledger.close(left.job, gone)
        except Exception as failure:  # noqa: BLE001  # each job is fenced from the others
            gone = []
            log.warning("sessions not reaped", job=left.job.task_id, cause=f"{type(failure).__name__}: {failure}")
        is_rid = len(gone) == len(left.sessions)
        if is_rid:
            log.info("sessions reaped", job=left.job.task_id, count=len(gone), attempt=left.attempt)
        elif left.attempt >= self.ledger.most_tries:
            log.error("sessions given up: end them on the backend", job=left.job.task_id, tries=left.attempt)
        return is_rid

    async def _torn_down(self, left: LeftSessions) -> list[OpenSession]:
        run = await self.runs.open(left.job.run_id)
        engine = (await run.equipment()).engine
        outcomes = await asyncio.gather(*(reaped(engine, session, self.teardown_seconds) for session in left.sessions))
        return [session for session, is_gone in zip(left.sessions, outcomes, strict=True) if is_gone]
