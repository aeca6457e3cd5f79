"""Whether a conversation of W+ costs the same with 2,000 in flight as with 500: nothing may grow with the crowd."""

from collections.abc import Sequence

from benchmarks.calibration import Sample, sampled
from benchmarks.cluster import Cluster, cluster
from benchmarks.figure import Figure
from benchmarks.options import Options

LIMIT = 1.2
_CROWD = 2000
_JOBS = 6000
_WARM_UP = 300


def measure(options: Options) -> list[Figure]:
    """One worker of each size in turn, with the same jobs."""
    usual: list[Sample] = []
    crowded: list[Sample] = []
    with cluster(options.store) as running:
        base_url = running.mock_model()
        for _ in range(options.rounds):
            usual.append(_cost(running, base_url, options.in_flight, options))
            crowded.append(_cost(running, base_url, _CROWD, options))
        blocks = running.blocks_seconds()
    return _figures(usual, crowded, options, blocks)


def _cost(running: Cluster, base_url: str, in_flight: int, options: Options) -> Sample:
    with running.worker(in_flight) as worker:
        running.run(base_url, _WARM_UP, [worker])
        return sampled(lambda: running.run(base_url, options.jobs or _JOBS, [worker]).worker_ms)


def _figures(
    usual: Sequence[Sample], crowded: Sequence[Sample], options: Options, blocks: Sequence[float]
) -> list[Figure]:
    return [
        Figure.of_cpu(f"W+, {options.in_flight} in flight", usual),
        Figure.of_cpu(f"W+, {_CROWD} in flight", crowded),
        Figure.of_pairs(f"W+, {_CROWD} : {options.in_flight} in flight", crowded, usual, LIMIT),
        Figure.plain("times a worker's loop was blocked for a second or more", [len(blocks)], "times"),
    ]
