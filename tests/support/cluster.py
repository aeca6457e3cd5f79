"""A cluster on this machine for tests: real Redis, real workers under a supervisor, a model server, the real CLI."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from results.reading import read_entries, shard_keys, visible_records
from results.store import open_store
from tests.support.redis_server import RedisServer, redis_server
from tests.support.worker_process import ROOT, WorkerProcess, start_worker

PARLEY = [sys.executable, "-c", "from producer.cli import main; main()"]

# A test's seconds are scarce: leases and sweeps run faster than in production, in the same proportions.
QUICK = {
    "PARLEY_LEASE_SECONDS": "6",
    "PARLEY_HEARTBEAT_SECONDS": "1.5",
    "PARLEY_SWEEP_SECONDS": "0.5",
    "PARLEY_MESSAGE_GRACE_SECONDS": "1",
    "PARLEY_LINGER_SECONDS": "0.3",
    "PARLEY_RETRY_DELAY_SECONDS": "0.5",
    "PARLEY_REAP_SECONDS": "1",
}


@dataclass
class MockModel:
    """`parley mock-model` as a process; its log says which turn of which conversation was asked for, in order."""

    url: str
    log: Path

    def requests(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def turns_by_session(self) -> dict[str, list[int]]:
        turns: dict[str, list[int]] = defaultdict(list)
        for request in self.requests():
            turns[request["session_id"]].append(request["turn"])
        return turns


@contextmanager
def mock_model(
    folder: Path, *, latency_ms: float = 50, turns: int = 5, arguments: tuple[str, ...] = ()
) -> Iterator[MockModel]:
    """Serve the offline model for the block."""
    log = folder / "requests.jsonl"
    log.touch()
    command = [*PARLEY, "mock-model", "--port", "0", "--latency-ms", str(latency_ms), "--turns", str(turns)]
    with subprocess.Popen(
        [*command, "--request-log", str(log), *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert "http" in line, "the model server did not start"
            yield MockModel(line[line.index("http") :].strip(), log)
        finally:
            process.kill()


@dataclass
class Supervisor:
    """Keeps a number of workers running, as a Deployment does: one that dies is started again."""

    broker: str
    count: int
    options: Mapping[str, Any]
    workers: list[WorkerProcess] = field(default_factory=list)
    restarts: int = 0
    _stopping: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        self.workers = [self._new() for _ in range(self.count)]
        for number in range(self.count):
            thread = threading.Thread(target=self._keep, args=(number,), daemon=True)
            thread.start()
            self._threads.append(thread)
        for worker in list(self.workers):
            worker.wait_for_line("worker ready")

    def _new(self) -> WorkerProcess:
        return start_worker(self.broker, **self.options)

    def _keep(self, number: int) -> None:
        while not self._stopping.is_set():
            self.workers[number].process.wait()
            if not self._stopping.is_set():
                self.restarts += 1
                self.workers[number] = self._new()

    def stop(self) -> list[int]:
        """SIGTERM for all; their exit codes."""
        self._stopping.set()
        for worker in self.workers:
            if worker.process.poll() is None:
                worker.process.send_signal(signal.SIGTERM)
        return [worker.process.wait(60) for worker in self.workers]

    def kill_all(self) -> None:
        self._stopping.set()
        for worker in self.workers:
            if worker.process.poll() is None:
                worker.kill()
        for thread in self._threads:
            thread.join(20)
        for worker in self.workers:
            worker.reader.join(20)


@dataclass
class Submit:
    """`parley submit` as a process."""

    process: subprocess.Popen[str]

    def finish(self, seconds: float = 300) -> dict[str, Any]:
        """Wait for its end; the summary object, with the exit code in `exit_code`."""
        out, err = self.process.communicate(timeout=seconds)
        assert out.strip(), err
        summary: dict[str, Any] = json.loads(out.strip().splitlines()[-1])
        assert summary["jobs"] == sum(summary[name] for name in ("ok", "failed", "cancelled", "dead", "pending"))
        return summary | {"exit_code": self.process.returncode, "stderr": err}


@dataclass
class Cluster:
    """What a test drives."""

    folder: Path
    redis: RedisServer
    results: str
    environment: dict[str, str]

    @contextmanager
    def workers(self, count: int, **options: Any) -> Iterator[Supervisor]:
        environment = QUICK | self.environment | options.pop("environment", {})
        supervisor = Supervisor(self.redis.url, count, {"environment": environment, **options})
        supervisor.start()
        try:
            yield supervisor
        finally:
            supervisor.kill_all()

    def submit(self, recipe: Path, jobs: Path, *arguments: str) -> Submit:
        command = [*PARLEY, "submit", str(recipe), "--jobs", str(jobs), "--results", self.results]
        process = subprocess.Popen(
            [*command, "--broker", self.redis.url, "--json", *arguments],
            cwd=ROOT,
            env={**os.environ, **self.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        return Submit(process)

    def records(self, run_id: str) -> list[dict[str, Any]]:
        return list(visible_records(open_store(self.results), run_id))

    def stored_lines(self, run_id: str) -> int:
        """How many records lie in the shards, visible or not."""
        store = open_store(self.results)
        return sum(len(read_entries(store, key)) for key in shard_keys(store, run_id))

    def check_nothing_held(self, run_id: str, namespaces: Iterable[str] = ()) -> None:
        """The standard check of the ledger: no claim, no window entry, no checkpoint, no permit."""
        base = f"parley:run:{run_id}"
        with self.redis.client() as client:
            assert client.zcard(f"{base}:claims") == 0
            assert client.hlen(f"{base}:window") == 0
            assert client.hlen(f"{base}:owners") == 0
            assert client.keys(f"{base}:checkpoint:*") == []
            assert client.exists("unacked") == 0
            for namespace in namespaces:
                assert client.zcard(f"parley:ns:{namespace}:held") == 0
                assert client.zcard(f"parley:ns:{namespace}:parked") == 0


@contextmanager
def cluster(
    folder: Path, *, results: str | None = None, environment: Mapping[str, str] | None = None
) -> Iterator[Cluster]:
    """Real Redis with AOF; results in a folder unless said otherwise."""
    with redis_server(folder / "redis") as server:
        yield Cluster(folder, server, results or str(folder / "results"), dict(environment or {}))


def write_recipe(folder: Path, text: str, jobs: Iterable[Mapping[str, Any]]) -> tuple[Path, Path]:
    """Write a recipe and its jobs; their paths."""
    recipe, lines = folder / "recipe.yaml", folder / "jobs.jsonl"
    recipe.write_text(text)
    lines.write_text("".join(json.dumps(job) + "\n" for job in jobs))
    return recipe, lines


def check_one_ok_record_each(records: list[dict[str, Any]], jobs: int) -> None:
    """Every job has exactly one visible record, and it is ok; every call id has exactly one answer, in call order."""
    assert Counter(record["index"] for record in records) == Counter(range(jobs))
    assert Counter(record["status"] for record in records) == {"ok": jobs}
    for record in records:
        check_calls_are_answered(record["messages"])


def check_calls_are_answered(messages: list[dict[str, Any]]) -> None:
    position = 0
    while position < len(messages):
        calls = [call["id"] for call in messages[position].get("tool_calls") or ()]
        answers = [message["tool_call_id"] for message in messages[position + 1 : position + 1 + len(calls)]]
        assert answers == calls
        position += 1 + len(calls)


def check_no_turn_before_a_checkpoint_was_repeated(model: MockModel) -> int:
    """Once a later turn was asked for, an earlier one never is again. Returns how many were asked for twice."""
    repeated = 0
    for session, turns in model.turns_by_session().items():
        assert turns == sorted(turns), f"{session} went back: {turns}"
        repeated += len(turns) - len(set(turns))
    return repeated
