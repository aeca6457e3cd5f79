"""A run that exists in the ledger only: what benchmarks of the ledger claim, checkpoint and settle."""

from jobs.ledger import Ledger
from jobs.ledger.runs import RunFacts

_BATCH = 1000
_FEEDER = "benchmark"


async def registered_run(ledger: Ledger, run_id: str, jobs: int) -> None:
    """Enter a run of stateless jobs and feed them all."""
    await ledger.runs.register(
        RunFacts(run_id=run_id, results="file:///nowhere", jobs=jobs, digest="0" * 64, routes=[()], limits={})
    )
    if not await ledger.feeding.take_lease(run_id, _FEEDER):
        raise RuntimeError(f"run {run_id} is fed by somebody else")
    for first in range(0, jobs, _BATCH):
        await ledger.feeding.feed(run_id, _FEEDER, [(index, 0) for index in range(first, min(first + _BATCH, jobs))])
