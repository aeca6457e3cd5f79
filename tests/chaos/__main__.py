"""The full-size chaos runs, with production's leases: `python -m tests.chaos`. Prints one line of figures a run."""

import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.cluster import (
    Cluster,
    MockModel,
    Supervisor,
    check_no_turn_before_a_checkpoint_was_repeated,
    check_one_ok_record_each,
    cluster,
    mock_model,
)
from tests.support.weather_recipe import weather_run
from tests.support.worker_process import WorkerProcess

JOBS, KILLS, RESTARTS = 2000, 10, 2
LATENCY_MS, TURNS = 200, 5
CONCURRENCY = 100
RECOVERY_LIMIT_SECONDS = 90.0


@dataclass
class Faults:
    """What was done to the cluster, and how long it took to get over it."""

    count: int = 0
    recovery_seconds: list[float] = field(default_factory=list)


def main(names: list[str]) -> int:
    """Run the named runs, or all of them; 1 when one of them broke an invariant."""
    runs: dict[str, Callable[[Cluster, Supervisor, MockModel, str, Faults], None]] = {
        "calm": lambda *_: None,
        "kills": kill_workers,
        "redis": restart_redis,
    }
    failed = 0
    for name in names or list(runs):
        try:
            print(name, run_once(runs[name]), flush=True)
        except AssertionError as broken:
            failed = 1
            print(name, "BROKEN:", broken, flush=True)
    return failed


def run_once(disturb: Callable[[Cluster, Supervisor, MockModel, str, Faults], None]) -> dict[str, Any]:
    """Make 2,000 conversations of workload W on two workers while something disturbs them; check, and say figures."""
    faults = Faults()
    with (
        here_and_model() as (folder, here, model),
        here.workers(2, concurrency=CONCURRENCY, environment=production()) as workers,
    ):
        started = time.monotonic()
        submit = here.submit(*weather_run(folder, model, JOBS))
        run_id = wait_for_run(here)
        disturb(here, workers, model, run_id, faults)
        summary = submit.finish(1200)
        seconds = time.monotonic() - started
        assert (summary["exit_code"], summary["ok"], summary["pending"]) == (0, JOBS, 0), summary
        records = here.records(run_id)
        check_one_ok_record_each(records, JOBS)
        repeated = check_no_turn_before_a_checkpoint_was_repeated(model)
        here.check_nothing_held(run_id)
        lost_attempts = sum(record["attempt"] - 1 for record in records)
        assert repeated <= lost_attempts
        assert all(recovery <= RECOVERY_LIMIT_SECONDS for recovery in faults.recovery_seconds), faults
        return {
            "jobs": JOBS,
            "ok": summary["ok"],
            "faults": faults.count,
            "stored_lines": here.stored_lines(run_id),
            "visible": len(records),
            "model_calls": len(model.requests()),
            "turns_in_flight_paid_again": repeated,
            "attempts_lost": lost_attempts,
            "recovery_seconds": [round(seconds, 1) for seconds in faults.recovery_seconds],
            "seconds": round(seconds, 1),
        }


def production() -> dict[str, str]:
    """The environment that takes the tests' quick settings back."""
    return {
        "PARLEY_LEASE_SECONDS": "60",
        "PARLEY_HEARTBEAT_SECONDS": "15",
        "PARLEY_SWEEP_SECONDS": "5",
        "PARLEY_MESSAGE_GRACE_SECONDS": "10",
        "PARLEY_LINGER_SECONDS": "2",
        "PARLEY_RETRY_DELAY_SECONDS": "10",
    }


@contextmanager
def here_and_model() -> Iterator[tuple[Path, Cluster, MockModel]]:
    """A cluster and a model server in a temporary folder."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with cluster(folder) as here, mock_model(folder, latency_ms=LATENCY_MS, turns=TURNS) as model:
            yield folder, here, model


def wait_for_run(here: Cluster) -> str:
    """The id of the run, as soon as the ledger knows it."""
    with here.redis.client() as client:
        while not (runs := client.smembers("parley:runs")):
            time.sleep(0.05)
        return str(next(iter(runs)).decode())


def settled(here: Cluster, run_id: str) -> int:
    with here.redis.client() as client:
        return int(client.hget(f"parley:run:{run_id}", "settled") or 0)


def kill_workers(here: Cluster, workers: Supervisor, model: MockModel, run_id: str, faults: Faults) -> None:
    """Kill (-9) a random worker's process group at ten random moments, one recovery watched for each."""
    chance = random.Random(7)
    watchers = []
    while faults.count < KILLS:
        time.sleep(chance.uniform(0.5, 4.0))
        assert settled(here, run_id) < JOBS, "the run ended before all kills were done"
        victim = chance.choice(workers.workers)
        if victim.process.poll() is not None:
            continue
        held = claims_of(here, run_id, victim)
        victim.kill()
        faults.count += 1
        watcher = threading.Thread(target=watch_recovery, args=(here, run_id, held, faults))
        watcher.start()
        watchers.append(watcher)
    for watcher in watchers:
        watcher.join()


def claims_of(here: Cluster, run_id: str, worker: WorkerProcess) -> dict[bytes, bytes]:
    """The jobs that a worker holds: index and fence."""
    with here.redis.client() as client:
        owners: dict[bytes, bytes] = client.hgetall(f"parley:run:{run_id}:owners")
    return {index: fence for index, fence in owners.items() if f"-{worker.process.pid}-".encode() in fence}


def watch_recovery(here: Cluster, run_id: str, held: dict[bytes, bytes], faults: Faults) -> None:
    """Wait until another attempt works on each of these jobs, or has settled it."""
    killed_at = time.monotonic()
    left = dict(held)
    with here.redis.client() as client:
        while left and time.monotonic() - killed_at < 2 * RECOVERY_LIMIT_SECONDS:
            time.sleep(0.25)
            for index, fence in list(left.items()):
                owner = client.hget(f"parley:run:{run_id}:owners", index)
                done = client.getbit(f"parley:run:{run_id}:done", int(index))
                if done or (owner is not None and owner != fence):
                    del left[index]
    if held:
        faults.recovery_seconds.append(time.monotonic() - killed_at)


def restart_redis(here: Cluster, _workers: Supervisor, _model: MockModel, run_id: str, faults: Faults) -> None:
    """Stop Redis (AOF) and start it again, twice, in the middle of the run."""
    for number, how in enumerate((signal.SIGTERM, signal.SIGKILL)):
        while settled(here, run_id) < JOBS * (number + 1) // 4:
            time.sleep(0.1)
        here.redis.stop(how)
        time.sleep(3)
        stopped_at = time.monotonic()
        here.redis.start()
        before = settled(here, run_id)
        while settled(here, run_id) <= before:
            time.sleep(0.1)
        faults.recovery_seconds.append(time.monotonic() - stopped_at)
        faults.count += 1
    assert faults.count == RESTARTS


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
