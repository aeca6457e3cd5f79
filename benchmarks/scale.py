"""Whether two worker processes make twice the conversations of one, while the model's server has room."""

from benchmarks.children import Child
from benchmarks.cluster import Cluster, cluster
from benchmarks.figure import Figure
from benchmarks.options import Options

LIMIT = 1.8
_JOBS = 1200
# So few that CPU is no limit, on two cores that the servers need as well: each worker is full, none is busy.
_IN_FLIGHT = 40
_WARM_UP = 100


def measure(options: Options) -> list[Figure]:
    """One worker, two workers, and again."""
    jobs, rates, ratios = options.jobs or _JOBS, [], []
    with cluster(options.store) as running:
        base_url = running.mock_model()
        for _ in range(options.rounds):
            with running.worker(_IN_FLIGHT) as first:
                one = _rate(running, base_url, jobs, [first])
                with running.worker(_IN_FLIGHT) as second:
                    two = _rate(running, base_url, jobs, [first, second])
            rates.append(one)
            ratios.append(two / one)
    return [
        Figure.plain(f"rate of one worker with {_IN_FLIGHT} in flight", rates, "a second"),
        Figure.plain("rate of two workers : rate of one", ratios, "times", LIMIT, is_least=True),
    ]


def _rate(running: Cluster, base_url: str, jobs: int, workers: list[Child]) -> float:
    running.run(base_url, _WARM_UP, workers)
    return running.run(base_url, jobs, workers).per_second
