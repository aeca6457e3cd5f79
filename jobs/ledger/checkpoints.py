"""Checkpoints: a job's state as a list of deltas, one for each turn, fenced by the claim."""

from dataclasses import dataclass

from jobs.job import JobReference
from jobs.ledger.claims import Claim
from jobs.ledger.connection import ScriptRunner


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """Append and read deltas. What is stored is proportional to the turn, not to the history."""

    scripts: ScriptRunner

    async def append(self, claim: Claim, position: int, delta: bytes) -> bool:
        """Store one delta at its position in the list; False when the claim is lost."""
        length = await self.scripts.run(
            self.scripts.script("checkpoint"), claim.job.run_id, claim.job.index, claim.fence, position, delta
        )
        return int(length) >= 0

    async def cut(self, claim: Claim, length: int) -> None:
        """Keep the first deltas only: those after them cannot be read."""
        await self.scripts.run(
            self.scripts.script("cut_checkpoint"), claim.job.run_id, claim.job.index, claim.fence, length
        )

    async def read(self, job: JobReference) -> list[bytes]:
        """Return the deltas of a job, oldest first; empty for a job that has not begun."""
        key = f"parley:run:{job.run_id}:checkpoint:{job.index}"
        deltas: list[bytes] = await self.scripts.patiently(lambda redis: redis.lrange(key, 0, -1))
        return deltas
