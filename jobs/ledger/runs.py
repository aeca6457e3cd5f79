"""Runs in the ledger: entering one, finding it, restoring its bits from object storage."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import orjson

from jobs.errors import RunConflict
from jobs.ledger.connection import ScriptRunner
from jobs.messages import message_template
from jobs.routing import Route, queue_of

RESTORE_BATCH = 500


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What a run is, as the ledger keeps it."""

    run_id: str
    results: str
    jobs: int
    digest: str
    routes: Sequence[Route]
    limits: Mapping[str, int]
    max_attempts: int = 3


@dataclass(frozen=True, slots=True)
class RunInfo:
    """What a worker needs to find a run's files."""

    run_id: str
    results: str
    jobs: int
    digest: str


class Settled(Protocol):
    """One record as object storage knows it."""

    @property
    def index(self) -> int:
        """The job."""
        ...

    @property
    def status(self) -> str:
        """ok, failed, cancelled or dead."""
        ...

    @property
    def input_tokens(self) -> int:
        """Counted by the model's server."""
        ...

    @property
    def output_tokens(self) -> int:
        """Counted by the model's server."""
        ...

    @property
    def model_calls(self) -> int:
        """How often the model was asked."""
        ...

    @property
    def tool_calls(self) -> int:
        """How many calls were answered."""
        ...


@dataclass(frozen=True, slots=True)
class Runs:
    """Register and look up."""

    scripts: ScriptRunner

    async def register(self, facts: RunFacts) -> bool:
        """Enter the run; True when the ledger did not have it. Raises :class:`RunConflict` for another digest."""
        fields: list[str | int | bytes] = [
            "results", facts.results, "jobs", facts.jobs, "digest", facts.digest, "routes", len(facts.routes),
            "max_attempts", facts.max_attempts,
        ]  # fmt: skip
        for number, route in enumerate(facts.routes):
            queue = queue_of(route, facts.limits)
            fields += [f"queue:{number}", queue, f"namespaces:{number}", orjson.dumps(route)]
            fields += [f"message:{number}", message_template(facts.run_id, route, queue)]
        answer = await self.scripts.run(self.scripts.script("register"), facts.run_id, *fields)
        if answer < 0:
            raise RunConflict(
                f"run {facts.run_id} is in this broker's ledger with other jobs or another recipe; "
                "give this one another --run-id"
            )
        return bool(answer == 1)

    async def info(self, run_id: str) -> RunInfo | None:
        """Return where a run's files are; None when the ledger does not know it."""
        results, jobs, digest = await self.scripts.patiently(
            lambda redis: redis.hmget(f"parley:run:{run_id}", "results", "jobs", "digest")
        )
        if results is None:
            return None
        return RunInfo(run_id, results.decode(), int(jobs), digest.decode())

    async def active(self) -> list[str]:
        """Return the ids of the runs that are not finished."""
        runs: set[bytes] = await self.scripts.patiently(lambda redis: redis.smembers("parley:runs"))
        return sorted(run.decode() for run in runs)

    async def restore(self, run_id: str, records: Iterable[Settled]) -> int:
        """Enter the bits and counters of records found in object storage. Returns how many were new."""
        new, batch = 0, list[str | int]()
        for record in records:
            batch += [
                record.index, record.status, record.input_tokens, record.output_tokens, record.model_calls,
                record.tool_calls,
            ]  # fmt: skip
            if len(batch) >= 6 * RESTORE_BATCH:
                new += await self.scripts.run(self.scripts.script("restore"), run_id, *batch)
                batch.clear()
        if batch:
            new += await self.scripts.run(self.scripts.script("restore"), run_id, *batch)
        return new

    async def request_cancellation(self, run_id: str) -> None:
        """Ask every worker to end the run's jobs: running ones at their next yield, others at their claim."""
        await self.scripts.patiently(lambda redis: redis.hset(f"parley:run:{run_id}", "cancel_requested", 1))
