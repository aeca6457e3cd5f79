"""What claim and settle cost together, at 500 jobs in flight: in the client, and in the Redis server."""

import asyncio
import secrets
import tempfile
from dataclasses import dataclass
from pathlib import Path
from random import Random

from benchmarks.calibration import Sample, calibration_ms
from benchmarks.figure import Figure
from benchmarks.in_flight import cpu_seconds_of, on_loop
from benchmarks.ledger_run import registered_run
from benchmarks.options import Options
from benchmarks.servers import RedisServer, redis_server
from jobs.job import JobReference
from jobs.ledger import Ledger
from jobs.ledger.claims import Granted, Usage

CLIENT_LIMIT_CPU_MS = 0.6
SERVER_LIMIT_CPU_MS = 0.3
_JOBS = 5000
# Jobs of W last about a second, so that a worker at its limit sees one of them begin and end every 2 ms: claims that
# come all at once would share pipelines and look cheaper than they are.
_WORK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class _Round:
    client: Sample
    server: Sample
    calls_a_pipeline: float


def measure(options: Options) -> list[Figure]:
    """Claim, hold for a second, settle; nothing is recorded in between."""
    with tempfile.TemporaryDirectory() as folder, redis_server(Path(folder) / "redis") as server:
        rounds = on_loop(lambda: _rounds(server, options))
    batches = [each.calls_a_pipeline for each in rounds]
    return [
        Figure.of_cpu("claim + settle, client", [each.client for each in rounds], CLIENT_LIMIT_CPU_MS),
        Figure.of_cpu("claim + settle, Redis server, a job", [each.server for each in rounds], SERVER_LIMIT_CPU_MS),
        Figure.plain("claim + settle, calls that shared a pipeline", batches, "calls"),
    ]


async def _rounds(server: RedisServer, options: Options) -> list[_Round]:
    async with Ledger.open(server.url) as ledger:
        await _round(server, ledger, jobs=500, in_flight=options.in_flight)  # loads scripts, opens connections
        jobs = options.jobs or _JOBS
        return [await _round(server, ledger, jobs=jobs, in_flight=options.in_flight) for _ in range(options.rounds)]


async def _round(server: RedisServer, ledger: Ledger, *, jobs: int, in_flight: int) -> _Round:
    run_id = f"benchmark-{secrets.token_hex(4)}"
    await registered_run(ledger, run_id, jobs)
    chance = Random(run_id)

    async def one(index: int) -> None:
        outcome = await ledger.claims.claim(JobReference(run_id, index), f"benchmark-{index}")
        if not isinstance(outcome, Granted):
            raise TypeError(f"job {index} was not granted: {outcome}")
        await asyncio.sleep(_WORK_SECONDS * chance.uniform(0.5, 1.5))
        if not await ledger.claims.settle(outcome.claim, "ok", Usage(1200, 300, 5, 4)):
            raise RuntimeError(f"job {index} was not settled")

    before_ms, server_before = calibration_ms(), server.cpu_seconds()
    pipelines, calls = ledger.scripts.pipelines, ledger.scripts.calls
    client_seconds = await cpu_seconds_of(one, count=jobs, in_flight=in_flight)
    server_seconds, after_ms = server.cpu_seconds() - server_before, calibration_ms()
    return _Round(
        Sample(client_seconds * 1000 / jobs, before_ms, after_ms),
        Sample(server_seconds * 1000 / jobs, before_ms, after_ms),
        (ledger.scripts.calls - calls) / max(1, ledger.scripts.pipelines - pipelines),
    )
