"""Claims: the right of one attempt to work on a job, a lease in Redis time with a fencing token."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from jobs.errors import LedgerCorrupt
from jobs.job import JobReference
from jobs.ledger.connection import ScriptRunner


@dataclass(frozen=True, slots=True)
class Claim:
    """A live claim: the job, its attempt number and the fence that every later write has to show."""

    job: JobReference
    attempt: int
    nonce: str
    strikes: int = 0

    @property
    def fence(self) -> str:
        """Return what the ledger compares: ``token:nonce``."""
        return f"{self.attempt}:{self.nonce}"


@dataclass(frozen=True, slots=True)
class Granted:
    """The job is ours: work on it. ``cancelled`` jobs only get their record."""

    claim: Claim
    cancelled: bool


@dataclass(frozen=True, slots=True)
class Exhausted:
    """The job is ours, but only to write its ``dead`` record: too many attempts were lost."""

    claim: Claim


@dataclass(frozen=True, slots=True)
class Parked:
    """No permit is free: the job waits in its namespace's line and holds nothing."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """Nothing to do: the job is done, another attempt lives, or the ledger does not know it."""

    reason: Literal["done", "busy", "unknown"]


ClaimOutcome = Granted | Exhausted | Parked | Dropped


@dataclass(frozen=True, slots=True)
class Usage:
    """What a conversation used, for the run's counters."""

    input_tokens: int = 0
    output_tokens: int = 0
    model_calls: int = 0
    tool_calls: int = 0


@dataclass(frozen=True, slots=True)
class Renewal:
    """What a beat of the heart brought back for one run."""

    cancelled: bool
    lost: frozenset[int]


@dataclass(frozen=True, slots=True)
class Claims:
    """Claim, renew, settle, give back. Seconds everywhere; Redis's clock decides."""

    scripts: ScriptRunner
    lease_seconds: float = 60.0
    quarantine_seconds: float = 30.0

    async def claim(self, job: JobReference, nonce: str) -> ClaimOutcome:
        """Ask for the job; ``nonce`` names the attempt, so that a repeated call gets the same answer."""
        outcome, token, strikes, cancelled = await self.scripts.run(
            self.scripts.script("claim"),
            job.run_id,
            job.index,
            nonce,
            _milliseconds(self.lease_seconds),
            _milliseconds(self.quarantine_seconds),
        )
        match outcome.decode():
            case "granted":
                return Granted(Claim(job, token, nonce, strikes), bool(cancelled))
            case "exhausted":
                return Exhausted(Claim(job, token, nonce, strikes))
            case "parked":
                return Parked()
            case ("done" | "busy" | "unknown") as reason:
                return Dropped(reason)
            case other:
                raise LedgerCorrupt(f"claim of {job.task_id} answered {other!r}; do all parts run the same version?")

    async def renew(self, run_id: str, claims: Iterable[Claim]) -> Renewal:
        """Renew the claims of this process on one run's jobs; say which are lost."""
        pairs = [part for claim in claims for part in (claim.job.index, claim.fence)]
        cancelled, *lost = await self.scripts.run(
            self.scripts.script("renew"),
            run_id,
            _milliseconds(self.lease_seconds),
            _milliseconds(self.quarantine_seconds),
            *pairs,
        )
        return Renewal(bool(cancelled), frozenset(lost))

    async def settle(self, claim: Claim, status: str, usage: Usage) -> bool:
        """Mark the job done, its record being durable; False when the claim was lost to a newer attempt."""
        answer = await self.scripts.run(
            self.scripts.script("settle"),
            claim.job.run_id,
            claim.job.index,
            claim.fence,
            status,
            usage.input_tokens,
            usage.output_tokens,
            usage.model_calls,
            usage.tool_calls,
            _milliseconds(self.lease_seconds),
        )
        return bool(answer in {b"settled", b"done"})

    async def give_back(self, claim: Claim, *, delay_seconds: float = 0.0, strikes: int = 0) -> None:
        """Give the claim back: the job runs again at once, or after the delay; its checkpoint stays."""
        await self._give_back(claim.job, claim.fence, delay_seconds, strikes)

    async def return_unclaimed(self, job: JobReference) -> None:
        """Put a job that was taken from the queue, but not claimed, back at the head of its queue."""
        await self._give_back(job, "", 0.0, 0)

    async def _give_back(self, job: JobReference, fence: str, delay_seconds: float, strikes: int) -> None:
        await self.scripts.run(
            self.scripts.script("give_back"),
            job.run_id,
            job.index,
            fence,
            _milliseconds(delay_seconds),
            strikes,
            _milliseconds(self.lease_seconds),
        )

    async def expire_all(self, run_id: str, *, nonce_prefix: str = "") -> int:
        """End the claims of dead processes now; returns how many.

        With the name of one worker as prefix its jobs get a strike, as for any lost attempt. Without one every process
        of the run was ended from outside: its jobs run again and none is to blame.
        """
        return int(await self.scripts.run(self.scripts.script("expire"), run_id, nonce_prefix))


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
