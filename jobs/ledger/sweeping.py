"""Sweeping: finding what died or was lost, and sending it again; one process at a time for each run."""

from dataclasses import dataclass

from jobs.ledger.connection import ScriptRunner


@dataclass(frozen=True, slots=True)
class Swept:
    """What one look through a run found."""

    is_ours: bool
    expired: int
    lost: int
    due: int
    handed_over: int


@dataclass(frozen=True, slots=True)
class Sweeping:
    """Expired claims, lost messages, due retries and free permits."""

    scripts: ScriptRunner
    lease_seconds: float = 12.0
    message_grace_seconds: float = 10.0
    permit_lease_seconds: float = 90.0
    most_jobs: int = 1000

    async def sweep(self, run_id: str, who: str) -> Swept:
        """Look once; does nothing while another process holds the sweep."""
        ours, *found = await self.scripts.run(
            self.scripts.script("sweep"),
            run_id,
            who,
            round(self.lease_seconds * 1000),
            round(self.message_grace_seconds * 1000),
            round(self.permit_lease_seconds * 1000),
            self.most_jobs,
        )
        return Swept(bool(ours), *found)
