"""A job's session on its engines: set up, restored, and torn down whatever happens."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import structlog

from engines.engine import ToolEngine
from engines.errors import SessionLost
from jobs.ledger.claims import Claim
from jobs.ledger.sessions import OpenSession, Sessions
from workers.assignment import Assignment
from workers.open_sessions import NotedSession

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Session:
    """The session of one attempt. ``teardown_failure`` says what went wrong at its end, for the record.

    ``goes_on`` when another attempt is to go on with the job: what its engines can take up stays open for it.
    ``is_uncertain`` when its setup was broken off: nobody knows what came of it on the backends.
    """

    id: str
    engine: ToolEngine
    noted: NotedSession | None = None
    is_set_up: bool = False
    goes_on: bool = False
    is_uncertain: bool = False
    teardown_failure: str | None = None

    async def scratch(self) -> dict[str, Any]:
        """Return what the session's tools keep, as JSON."""
        return await self.engine.get_session_scratch(self.id)


@asynccontextmanager
async def session_of(
    assignment: Assignment, claim: Claim, ledger: Sessions, teardown_seconds: float
) -> AsyncIterator[Session]:
    """Set up one session for this attempt, with the history and the scratch of the attempts before it.

    What outlives this process is in the ledger before it is set up and until it is torn down. Raises ``Abandoned``
    where the session must not be set up.
    """
    engine = assignment.equipment.engine
    namespaces = {tool.namespace for tool in assignment.tools.tools}
    # The attempt is part of the name: a lost attempt may still be tearing its own session down.
    session = Session(f"{claim.job.task_id}.{claim.attempt}", engine)
    if engine.leaves_behind(namespaces):
        described = OpenSession(claim.fence, session.id, tuple(sorted(namespaces)), {})
        session.noted = NotedSession(ledger, claim, engine, described, teardown_seconds)
        await session.noted.before_setup(is_resumed=assignment.is_resumed)
    try:
        await engine.setup(
            session.id,
            initial_state=_earlier_state(assignment),
            auxdata={"run_id": claim.job.run_id, "job_id": assignment.job_id, "index": claim.job.index}
            | {"metadata": assignment.line.metadata, "variables": assignment.line.variables},
            seed=assignment.seed,
            namespaces=namespaces,
        )
        session.is_set_up = True
        if session.noted is not None:
            await session.noted.after_setup(await session.scratch())
        yield session
    except BaseException as failure:
        session.goes_on = not isinstance(failure, SessionLost)
        session.is_uncertain = not session.is_set_up and not isinstance(failure, Exception)
        raise
    finally:
        await _tear_down(session, teardown_seconds)
        assignment.teardown_failure = session.teardown_failure


def _earlier_state(assignment: Assignment) -> dict[str, Any] | None:
    """What the attempts before left on the engines, told by the conversation itself; None for a first attempt.

    Of the turns that a forked job begins with only the calls are known: the engines make the rest again.
    """
    if not assignment.is_resumed:
        return None if assignment.line.history is None else {"history": assignment.history_entries()}
    return {"history": assignment.history_entries(), "scratch": assignment.scratch}


async def _tear_down(session: Session, seconds: float) -> None:
    keeping = session.noted.keeps if session.noted is not None and session.goes_on else frozenset[str]()
    try:
        async with asyncio.timeout(seconds):
            await session.engine.teardown(session.id, keeping=keeping)
    except Exception as failure:  # noqa: BLE001  # a backend that does not let go must not cost the job its record
        session.teardown_failure = f"{type(failure).__name__}: {failure}".removesuffix(": ")
        log.warning("session was not torn down", session=session.id, cause=session.teardown_failure)
    if session.noted is not None:
        is_open = session.is_uncertain or session.teardown_failure is not None
        await session.noted.after_teardown(is_open=is_open, is_kept=bool(keeping))
