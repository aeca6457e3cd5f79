"""What a conversation in flight takes of a worker's memory: 2,000 of W at once, with model calls of four seconds."""

from benchmarks.cluster import cluster
from benchmarks.figure import Figure
from benchmarks.options import Options
from benchmarks.process_tree import TreeWatch, resident_bytes

LIMIT_KB = 120.0
_CROWD = 2000
_LATENCY_MS = 4000
_WARM_UP = 50
_KB, _MB = 1000, 1e6


def measure(options: Options) -> list[Figure]:
    """The peak of a fresh worker over what it held when idle, after its first jobs."""
    jobs, per_conversation, idle_mb = options.jobs or 2 * _CROWD, [], []
    with cluster(options.store) as running:
        quick, slow = running.mock_model(), running.mock_model(_LATENCY_MS)
        for _ in range(options.rounds):
            with running.worker(_CROWD) as worker:
                running.run(quick, _WARM_UP, [worker])
                idle = resident_bytes(worker.pid)
                with TreeWatch(worker.pid) as watch:
                    running.run(slow, jobs, [worker])
            idle_mb.append(idle / _MB)
            per_conversation.append((watch.most_bytes - idle) / _CROWD / _KB)
    return [
        Figure.plain("memory of an idle worker", idle_mb, "MB"),
        Figure.plain(f"memory of a conversation in flight, {_CROWD} in flight", per_conversation, "KB", LIMIT_KB),
    ]
