"""Open sessions: what attempts made on backends that outlive their process, remembered until it is torn down."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from jobs.errors import LedgerCorrupt
from jobs.job import JobReference
from jobs.ledger.claims import Claim
from jobs.ledger.connection import ScriptRunner


@dataclass(frozen=True, slots=True)
class OpenSession:
    """One attempt's session: its id on the engines, the namespaces of its tools, and what they need to tear it down."""

    fence: str
    id: str
    namespaces: tuple[str, ...]
    scratch: Mapping[str, Any]

    def encoded(self) -> bytes:
        """Return what the ledger keeps under the fence."""
        return orjson.dumps({"id": self.id, "namespaces": self.namespaces, "scratch": self.scratch})

    @classmethod
    def decoded(cls, fence: bytes, stored: bytes) -> "OpenSession":
        """Read what :meth:`encoded` wrote."""
        try:
            entry = orjson.loads(stored)
            return cls(fence.decode(), str(entry["id"]), tuple(entry["namespaces"]), dict(entry["scratch"]))
        except (ValueError, KeyError, TypeError) as failure:
            raise LedgerCorrupt(f"the session of claim {fence.decode()} cannot be read: {failure}") from failure


@dataclass(frozen=True, slots=True)
class Earlier:
    """Sessions that earlier attempts of a job left; their permits are in quarantine unless that is over."""

    sessions: tuple[OpenSession, ...] = ()
    quarantine_is_over: bool = True


@dataclass(frozen=True, slots=True)
class LeftSessions:
    """Sessions of a job that nobody alive holds, ours to tear down until the reaper's lease is over."""

    job: JobReference
    attempt: int
    sessions: tuple[OpenSession, ...]


@dataclass(frozen=True, slots=True)
class Sessions:
    """Note, forget, leave and take open sessions. A permit stays with a dead holder's session, up to 180 s (F3)."""

    scripts: ScriptRunner
    lease_seconds: float = 60.0
    reap_lease_seconds: float = 30.0
    longest_pause_seconds: float = 300.0
    most_tries: int = 12
    most_jobs: int = 50

    async def open(self, claim: Claim, session: OpenSession) -> Earlier | None:
        """Note a session before it is set up, and again with its scratch; None when the claim is lost.

        Returns what earlier attempts of the job left open.
        """
        is_ours, quarantine_is_over, *others = await self.scripts.run(
            self.scripts.script("open_session"), claim.job.run_id, claim.job.index, claim.fence, session.encoded()
        )
        return Earlier(_sessions_of(others), bool(quarantine_is_over)) if is_ours else None

    async def close(self, job: JobReference, sessions: Collection[OpenSession]) -> None:
        """Forget sessions that are torn down; permits that were in quarantine for them go on."""
        await self.scripts.run(
            self.scripts.script("close_sessions"),
            job.run_id,
            job.index,
            _milliseconds(self.lease_seconds),
            len(sessions),
            *(session.fence for session in sessions),
            *sorted({namespace for session in sessions for namespace in session.namespaces}),
        )

    async def leave(self, job: JobReference, session: OpenSession) -> None:
        """Leave a session whose teardown failed to the reaper."""
        await self.scripts.run(
            self.scripts.script("leave_session"), job.run_id, job.index, session.fence, session.encoded()
        )

    async def take(self) -> list[LeftSessions]:
        """Take what is due to be torn down; what is not closed comes back later, but not for ever."""
        taken = await self.scripts.run(
            self.scripts.script("take_sessions"),
            self.most_jobs,
            _milliseconds(self.reap_lease_seconds),
            _milliseconds(self.longest_pause_seconds),
            self.most_tries,
        )
        return [
            LeftSessions(JobReference(run.decode(), index), attempt, _sessions_of(found))
            for run, index, attempt, *found in taken
        ]


def _sessions_of(flat: Sequence[bytes]) -> tuple[OpenSession, ...]:
    return tuple(OpenSession.decoded(fence, stored) for fence, stored in zip(flat[::2], flat[1::2], strict=True))


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
