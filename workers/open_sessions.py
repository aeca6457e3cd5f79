"""Sessions that outlive this process: noted in the ledger before they are set up, forgotten when they are torn down."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import structlog

from engines.engine import ToolEngine
from jobs.errors import JobsError
from jobs.ledger.claims import Claim
from jobs.ledger.sessions import Earlier, OpenSession, Sessions
from workers.ending import Abandoned, Ended, Ending, Failure, Lost, Postponed

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class NotedSession:
    """What the ledger is told of one attempt's session. Nothing, when its engines leave nothing behind."""

    ledger: Sessions
    claim: Claim
    engine: ToolEngine
    session: OpenSession
    seconds: float
    _taking_up: frozenset[str] = frozenset()
    _taken_up: list[OpenSession] = field(default_factory=list)

    @property
    def keeps(self) -> frozenset[str]:
        """Return the namespaces whose backend session the job's next attempt takes up."""
        return self.engine.takes_up(self.session.namespaces)

    async def before_setup(self, *, is_resumed: bool) -> None:
        """Note the session and end what earlier attempts left, but for what setup takes up."""
        earlier = await self._note()
        if is_resumed:
            self._taking_up = self.keeps
        if self._taking_up and not earlier.sessions:
            reason = (
                "the session that the job goes on with is gone from its backend: it was torn down meanwhile, by a "
                "pause or because no worker came in time; sessions made again (resume: replay) live through that"
            )
            await self._abandon(Ended("failed", Failure("session_lost", reason)))
        torn_down = await asyncio.gather(*(self._tear_down(session) for session in earlier.sessions))
        gone = [session for session, is_gone in zip(earlier.sessions, torn_down, strict=True) if is_gone]
        await self._forget([session for session in gone if not self._is_taken_up(session)])
        self._taken_up = [session for session in gone if self._is_taken_up(session)]
        if len(gone) < len(earlier.sessions) and self.claim.job.namespaces and not earlier.quarantine_is_over:
            # Its permit stands for that session. A second one would be one too many for the backend (F3).
            reason = "a session of an earlier attempt is not torn down yet"
            await self._abandon(Postponed(Failure("session_left", reason), strikes=0))

    async def after_setup(self, scratch: Mapping[str, Any]) -> None:
        """Keep what a teardown in another process needs."""
        self.session = replace(self.session, scratch=scratch)
        await self._note()
        await self._forget(self._taken_up)

    async def after_teardown(self, *, is_open: bool, is_kept: bool) -> None:
        """Forget the session, or leave it: to the job's next attempt what is kept for it, else to the reaper."""
        if is_open:
            try:
                await self.ledger.leave(self.claim.job, self.session)
            except JobsError as failure:
                log.warning("session left without a note", session=self.session.id, cause=str(failure))
        elif not is_kept:
            await self._forget([self.session])

    async def _note(self) -> Earlier:
        earlier = await self.ledger.open(self.claim, self.session)
        if earlier is None:
            raise Abandoned(Lost())
        return earlier

    async def _forget(self, sessions: Collection[OpenSession]) -> None:
        if not sessions:
            return
        try:
            await self.ledger.close(self.claim.job, sessions)
        except JobsError as failure:  # the reaper will find nothing to tear down
            log.warning("session not forgotten", session=self.session.id, cause=str(failure))

    async def _abandon(self, ending: Ending) -> NoReturn:
        await self._forget([self.session])  # it was never set up
        raise Abandoned(ending)

    def _is_taken_up(self, session: OpenSession) -> bool:
        return not self._taking_up.isdisjoint(session.namespaces)

    async def _tear_down(self, session: OpenSession) -> bool:
        return await reaped(self.engine, session, self.seconds, keeping=self._taking_up)


async def reaped(
    engine: ToolEngine, session: OpenSession, seconds: float, *, keeping: Collection[str] = frozenset()
) -> bool:
    """Tear down on its backends what a dead process left, within so many seconds; say whether it is gone."""
    namespaces = set(session.namespaces).difference(keeping)
    if not engine.leaves_behind(namespaces):
        return True
    try:
        async with asyncio.timeout(seconds):
            await engine.reap(session.id, scratch=session.scratch, namespaces=namespaces)
    except Exception as failure:  # noqa: BLE001  # a backend that does not let go must not stop anything else
        cause = f"{type(failure).__name__}: {failure}".removesuffix(": ")
        log.warning("session still open", session=session.id, cause=cause)
        return False
    return True
