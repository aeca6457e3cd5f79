"""W+: what one conversation of W costs through the whole product, beside the same by hand in the same run."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from benchmarks.by_hand import Transport
from benchmarks.calibration import Sample, calibration_ms, sampled
from benchmarks.children import child
from benchmarks.cluster import Cluster, RunCost, cluster
from benchmarks.figure import Figure
from benchmarks.options import Options

LIMIT_CPU_MS = 5.0
LIMIT_OF_BY_HAND = 0.25
_JOBS = 3000
_BY_HAND = 1000
_WARM_UP = 300


@dataclass(slots=True)
class _Rounds:
    costs: list[RunCost] = field(default_factory=list)
    ours: list[Sample] = field(default_factory=list)
    redis: list[Sample] = field(default_factory=list)
    aiohttp: list[Sample] = field(default_factory=list)
    httpx: list[Sample] = field(default_factory=list)


def measure(options: Options) -> list[Figure]:
    """Ours, by hand over aiohttp, by hand as it comes, and again; one worker process, one stand-in for all."""
    rounds, jobs = _Rounds(), options.jobs or _JOBS
    with cluster(options.store) as running:
        base_url = running.mock_model()
        with running.worker(options.in_flight) as worker:
            running.run(base_url, _WARM_UP, [worker])
            for _ in range(options.rounds):
                _ours(rounds, lambda: running.run(base_url, jobs, [worker]))
                rounds.aiohttp.append(_by_hand(running, "aiohttp", base_url, options))
                rounds.httpx.append(_by_hand(running, "httpx", base_url, options))
        blocks = running.blocks_seconds()
    return _figures(rounds, options, blocks)


def _ours(rounds: _Rounds, run: Callable[[], RunCost]) -> None:
    before_ms = calibration_ms()
    cost = run()
    after_ms = calibration_ms()
    rounds.costs.append(cost)
    rounds.ours.append(Sample(cost.worker_ms, before_ms, after_ms))
    rounds.redis.append(Sample(cost.redis_ms, before_ms, after_ms))


def _by_hand(running: Cluster, transport: Transport, base_url: str, options: Options) -> Sample:
    conversations = options.by_hand or _BY_HAND
    command = [sys.executable, "-m", "benchmarks.by_hand", transport, base_url]
    command += [str(conversations), str(options.in_flight)]

    def cpu_ms() -> float:
        with child(command, running.folder / f"{transport}.log") as process:
            return float(json.loads(process.finish(within_seconds=1800))["cpu_ms"])

    return sampled(cpu_ms)


def _figures(rounds: _Rounds, options: Options, blocks: Sequence[float]) -> list[Figure]:
    costs, where = rounds.costs, f"{options.in_flight} in flight, {options.store}"
    blocked = Figure.plain("times the worker's loop was blocked for a second or more", [len(blocks)], "times")
    return [
        Figure.of_cpu(f"W+, worker process tree, {where}", rounds.ours, LIMIT_CPU_MS),
        Figure.of_cpu("W by hand, AsyncOpenAI + aiohttp", rounds.aiohttp),
        Figure.of_cpu("W by hand, AsyncOpenAI", rounds.httpx),
        Figure.of_pairs("W+ : by hand with aiohttp", rounds.ours, rounds.aiohttp, LIMIT_OF_BY_HAND),
        Figure.of_pairs("W+ : by hand", rounds.ours, rounds.httpx),
        Figure.of_cpu("Redis server, a job of W+", rounds.redis, note="its limit of 0.3 is for claim and settle"),
        Figure.plain("parley submit, a job of W+", [each.submit_ms for each in costs], "CPU-ms"),
        Figure.plain("rate while all this shares the machine", [each.per_second for each in costs], "a second"),
        blocked,
    ]
