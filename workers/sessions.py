"""A job's session on its engines: set up, restored, and torn down whatever happens."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import structlog

from engines.engine import ToolEngine
from jobs.ledger.claims import Claim
from workers.assignment import Assignment

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Session:
    """The session of one attempt. ``teardown_failure`` says what went wrong at its end, for the record."""

    id: str
    engine: ToolEngine
    teardown_failure: str | None = None

    async def scratch(self) -> dict[str, Any]:
        """Return what the session's tools keep, as JSON."""
        return await self.engine.get_session_scratch(self.id)


@asynccontextmanager
async def session_of(assignment: Assignment, claim: Claim, teardown_seconds: float) -> AsyncIterator[Session]:
    """Set up one session for this attempt, with the history and the scratch of the attempts before it."""
    engine = assignment.equipment.engine
    # The attempt is part of the name: a lost attempt may still be tearing its own session down.
    session = Session(f"{claim.job.task_id}.{claim.attempt}", engine)
    try:
        await engine.setup(
            session.id,
            initial_state=_earlier_state(assignment),
            auxdata={"run_id": claim.job.run_id, "job_id": assignment.job_id, "index": claim.job.index}
            | {"metadata": assignment.line.metadata, "variables": assignment.line.variables},
            seed=assignment.seed,
            namespaces={tool.namespace for tool in assignment.tools.tools},
        )
        yield session
    finally:
        await _tear_down(session, teardown_seconds)
        assignment.teardown_failure = session.teardown_failure


def _earlier_state(assignment: Assignment) -> dict[str, Any] | None:
    """What the attempts before left on the engines, told by the conversation itself; None for a first attempt."""
    if not assignment.is_resumed:
        return None
    history = assignment.state.history_entries(assignment.tools.names)
    return {"history": history, "scratch": assignment.scratch}


async def _tear_down(session: Session, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await session.engine.teardown(session.id)
    except Exception as failure:  # noqa: BLE001  # a backend that does not let go must not cost the job its record
        session.teardown_failure = f"{type(failure).__name__}: {failure}".removesuffix(": ")
        log.warning("session was not torn down", session=session.id, cause=session.teardown_failure)
