"""A whole Parley on this machine: Redis, an object store, the model's stand-in and workers, fed by `parley submit`."""

import json
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.children import Child, child
from benchmarks.options import StoreKind
from benchmarks.process_tree import TreeWatch, cpu_seconds
from benchmarks.servers import BUCKET, PARLEY, RedisServer, mock_model, redis_server, s3_server, worker
from benchmarks.workload import MODEL_CALLS, TOOL_CALLS, write_files

_LONGEST_RUN_SECONDS = 3600.0
_BLOCKED = "the event loop was blocked"


@dataclass(frozen=True, slots=True)
class RunCost:
    """What one run of W+ used, in CPU-ms a conversation; the last tenth of a second of submit is missing."""

    worker_ms: float
    redis_ms: float
    submit_ms: float
    wall_seconds: float
    conversations: int

    @property
    def per_second(self) -> float:
        """Conversations per second from submit's start to its end."""
        return self.conversations / self.wall_seconds


@dataclass
class Cluster:
    """What a benchmark drives."""

    folder: Path
    redis: RedisServer
    results: str
    environment: Mapping[str, str]
    runs: int = 0
    _parts: ExitStack = field(default_factory=ExitStack)

    @contextmanager
    def worker(self, in_flight: int) -> Iterator[Child]:
        """Run one more worker process for the block."""
        number = len(list(self.folder.glob("worker-*.log"))) + 1
        with worker(
            self.redis.url, self.folder, in_flight=in_flight, environment=self.environment, number=number
        ) as process:
            yield process

    def mock_model(self, latency_ms: float = 200) -> str:
        """Start the model's stand-in, which ends with the cluster; its base URL."""
        return self._parts.enter_context(mock_model(self.folder, latency_ms=latency_ms))

    def run(self, base_url: str, conversations: int, workers: Sequence[Child]) -> RunCost:
        """Submit W, wait until each job is settled, and say what that cost; RuntimeError when a job is not ok."""
        self.runs += 1
        name = f"w-{self.runs}"
        recipe, jobs = write_files(self.folder, base_url, conversations, name=name)
        command: list[str | Path] = [
            *PARLEY,
            "submit",
            recipe,
            "--jobs",
            jobs,
            "--results",
            self.results,
            "--broker",
            self.redis.url,
        ]
        before, redis_before = sum(cpu_seconds(each.pid) for each in workers), self.redis.cpu_seconds()
        started = time.monotonic()
        log = self.folder / f"submit-{name}.log"
        with child([*command, "--json"], log, self.environment) as feeder, TreeWatch(feeder.pid) as watch:
            summary = json.loads(feeder.finish(within_seconds=_LONGEST_RUN_SECONDS))
        wall_seconds = time.monotonic() - started
        _check(summary, conversations)
        worker_seconds = sum(cpu_seconds(each.pid) for each in workers) - before
        return RunCost(
            worker_ms=worker_seconds * 1000 / conversations,
            redis_ms=(self.redis.cpu_seconds() - redis_before) * 1000 / conversations,
            submit_ms=watch.cpu_seconds * 1000 / conversations,
            wall_seconds=wall_seconds,
            conversations=conversations,
        )

    def blocks_seconds(self) -> list[float]:
        """Return how long the workers' loops were blocked each time they said so (from one second on)."""
        logs = [path.read_text(errors="replace") for path in self.folder.glob("worker-*.log")]
        return [json.loads(line)["seconds"] for log in logs for line in log.splitlines() if _BLOCKED in line]


@contextmanager
def cluster(store: StoreKind) -> Iterator[Cluster]:
    """Run the parts that all workers share for the block; everything lies in a temporary folder."""
    folder = Path(tempfile.mkdtemp(prefix="parley-benchmark-"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        environment = stack.enter_context(s3_server(folder)) if store == "s3" else {}
        results = f"s3://{BUCKET}/results" if store == "s3" else str(folder / "results")
        server = stack.enter_context(redis_server(folder / "redis"))
        parts = stack.enter_context(ExitStack())
        yield Cluster(folder, server, results, environment, _parts=parts)


def _check(summary: Mapping[str, Any], conversations: int) -> None:
    usage = summary["usage"]
    wanted = (conversations, conversations * MODEL_CALLS, conversations * TOOL_CALLS)
    if (summary["ok"], usage["model_calls"], usage["tool_calls"]) != wanted:
        raise RuntimeError(f"the run did not play W to its end: {summary}")
