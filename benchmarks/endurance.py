"""Whether a worker's memory stays flat over a long run of W+ (`--jobs 100000` for the figure of the table)."""

import statistics

from benchmarks.cluster import cluster
from benchmarks.figure import Figure
from benchmarks.options import Options
from benchmarks.process_tree import TreeWatch

LIMIT_MB_A_THOUSAND = 1.0
_JOBS = 20_000
_SETTLING_SHARE = 0.25
_MB = 1e6


def measure(options: Options) -> list[Figure]:
    """The slope of the worker's memory over the later three quarters of one run."""
    jobs = options.jobs or _JOBS
    with cluster(options.store) as running:
        base_url = running.mock_model()
        with running.worker(options.in_flight) as worker:
            running.run(base_url, 300, [worker])
            with TreeWatch(worker.pid, every_seconds=0.5) as watch:
                cost = running.run(base_url, jobs, [worker])
    samples = watch.samples[int(len(watch.samples) * _SETTLING_SHARE) :]
    seconds, sizes = zip(*samples, strict=True)
    slope = statistics.linear_regression(seconds, [size / _MB for size in sizes]).slope / cost.per_second * 1000
    return [
        Figure.plain(f"growth of the worker over {jobs:,} jobs", [slope], "MB/1000 jobs", LIMIT_MB_A_THOUSAND),
        Figure.plain("memory of the worker at most", [watch.most_bytes / _MB], "MB"),
        Figure.plain("rate while all this shares the machine", [cost.per_second], "a second"),
        Figure.plain("CPU-ms of a conversation, worker process tree", [cost.worker_ms], "CPU-ms"),
    ]
