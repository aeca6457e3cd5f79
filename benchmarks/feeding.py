"""How many jobs a second one core feeds into a bounded window, and what a run takes of Redis's memory."""

import asyncio
import secrets
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.calibration import Sample, calibration_ms
from benchmarks.figure import Figure
from benchmarks.in_flight import on_loop
from benchmarks.options import Options
from benchmarks.servers import RedisServer, redis_server
from jobs.job import JobReference
from jobs.ledger import Ledger
from jobs.ledger.claims import Granted, Usage
from jobs.routing import CONVERSATIONS_QUEUE
from producer.feeder import Feeder
from results.async_store import AsyncStore
from results.manifest import InputPart, RunManifest
from results.store import open_store

LIMIT_JOBS_A_SECOND = 20_000
LIMIT_CPU_MS = 1000 / LIMIT_JOBS_A_SECOND
MEMORY_LIMIT_MB = 40.0
GROWTH_LIMIT_MB = 1.0
_JOBS = 60_000
_GROWTH_FROM_JOBS = 500_000
_MB = 1e6
_LANES = 500


@dataclass(slots=True)
class _Seen:
    """Fills of the window, each with what it cost, and Redis's memory whenever the window was full."""

    feeder: list[Sample] = field(default_factory=list)
    server: list[Sample] = field(default_factory=list)
    full_bytes: list[int] = field(default_factory=list)
    empty_bytes: int = 0


def measure(options: Options) -> list[Figure]:
    """Feed a run through the default window; what is fed is claimed and settled in between, unmeasured."""
    jobs = options.jobs or _JOBS
    with tempfile.TemporaryDirectory() as folder, redis_server(Path(folder) / "redis") as server:
        seen = on_loop(lambda: _feed(server, Path(folder), jobs))
    full_mb = [(size - seen.empty_bytes) / _MB for size in seen.full_bytes]
    feeder = Figure.of_cpu("feeding, the feeder's own CPU, a job", seen.feeder, LIMIT_CPU_MS)
    figures = [
        feeder,
        Figure.plain(
            "  that is, at calibration 26", [1000 / feeder.held], "jobs/s/core", LIMIT_JOBS_A_SECOND, is_least=True
        ),
        Figure.of_cpu("feeding, Redis server, a job", seen.server),
        Figure.plain(f"Redis memory of a run of {jobs:,} jobs, at most", [max(full_mb)], "MB", MEMORY_LIMIT_MB),
    ]
    if jobs >= _GROWTH_FROM_JOBS:
        growth_mb = statistics.linear_regression(range(len(full_mb)), full_mb).slope * len(full_mb) / jobs * 1e6
        figures.append(Figure.plain("  growth for each further 10^6 jobs", [growth_mb], "MB", GROWTH_LIMIT_MB))
    return figures


async def _feed(server: RedisServer, folder: Path, jobs: int) -> _Seen:
    manifest, seen = _manifest(jobs), _Seen()
    async with Ledger.open(server.url) as ledger, AsyncStore(open_store(str(folder / "results"))) as store:
        await ledger.ping()
        seen.empty_bytes = server.used_bytes()
        feeder = Feeder(ledger, store, manifest, "file:///nowhere")
        settled = iter(range(jobs))
        while True:
            window = await _fill_window(server, ledger, feeder, seen)
            if window < min(feeder.window, jobs):
                return seen
            seen.full_bytes.append(server.used_bytes())
            await _work_off(ledger, manifest.run_id, settled, feeder.window // 2)


async def _fill_window(server: RedisServer, ledger: Ledger, feeder: Feeder, seen: _Seen) -> int:
    """One round of the feeder's loop; how many jobs are in the window now."""
    before_ms, server_before, started = calibration_ms(), server.cpu_seconds(), time.process_time()
    await feeder.register()
    if not await ledger.feeding.take_lease(feeder.run_id, feeder.token):
        raise RuntimeError(f"run {feeder.run_id} is fed by somebody else")
    before = await ledger.progress.snapshot(feeder.run_id)
    await feeder.top_up(before)
    seconds, server_seconds = time.process_time() - started, server.cpu_seconds() - server_before
    window = (await ledger.progress.snapshot(feeder.run_id)).window
    if fed := window - before.window:
        after_ms = calibration_ms()
        seen.feeder.append(Sample(seconds * 1000 / fed, before_ms, after_ms))
        seen.server.append(Sample(server_seconds * 1000 / fed, before_ms, after_ms))
    return window


async def _work_off(ledger: Ledger, run_id: str, indices: Iterator[int], count: int) -> None:
    """Do to the ledger what workers do: take messages, claim, settle."""
    await ledger.scripts.redis.rpop(CONVERSATIONS_QUEUE, count)
    mine = iter([index for index, _ in zip(indices, range(count), strict=False)])

    async def lane() -> None:
        for index in mine:
            outcome = await ledger.claims.claim(JobReference(run_id, index), "benchmark")
            if not isinstance(outcome, Granted):
                raise TypeError(f"job {index} was not granted: {outcome}")
            await ledger.claims.settle(outcome.claim, "ok", Usage(1200, 300, 5, 4))

    async with asyncio.TaskGroup() as group:
        for _ in range(_LANES):
            group.create_task(lane())


def _manifest(jobs: int) -> RunManifest:
    """A run whose jobs have one route, so that its parts are never read."""
    run_id, digest = f"benchmark-{secrets.token_hex(4)}", "0" * 64
    return RunManifest(
        run_id=run_id,
        name="benchmark",
        created_at="2026-01-01T00:00:00+00:00",
        jobs=jobs,
        recipe_key=f"{run_id}/recipe.json",
        recipe_digest=digest,
        input_digest=digest,
        parts=(InputPart(key=f"{run_id}/input/part-000000.jsonl.zst", first_index=0, count=jobs, digest=digest),),
        routes=((),),
        uniform_route=0,
    )
