"""Workers killed at random moments: nothing lost, nothing visible twice, nothing paid twice, nothing held."""

import random
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.cluster import (
    Cluster,
    Supervisor,
    check_no_turn_before_a_checkpoint_was_repeated,
    check_one_ok_record_each,
    cluster,
    mock_model,
)
from tests.support.weather_recipe import weather_run

JOBS = 200
KILLS = 4


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Cluster]:
    with cluster(tmp_path) as running:
        yield running


def settled(here: Cluster, run_id: str) -> int:
    with here.redis.client() as client:
        return int(client.hget(f"parley:run:{run_id}", "settled") or 0)


class Killer:
    """Kills a random worker's whole process group each time the run has come a bit further."""

    def __init__(self, here: Cluster, workers: Supervisor, kills: int, seed: int) -> None:
        self.here, self.workers, self.kills = here, workers, kills
        self.chance = random.Random(seed)
        self.killed = 0

    def run(self, model_requests: object) -> None:
        assert callable(model_requests)
        asked = 0
        while self.killed < self.kills:
            target = asked + self.chance.randint(40, 120)
            while (asked := model_requests()) < target:
                if self.stopped.wait(0.05):
                    return
            victim = self.chance.choice(self.workers.workers)
            if victim.process.poll() is None:
                victim.kill()
                self.killed += 1

    @contextmanager
    def running(self, model_requests: object) -> Iterator[None]:
        self.stopped = threading.Event()
        thread = threading.Thread(target=self.run, args=(model_requests,))
        thread.start()
        try:
            yield
        finally:
            self.stopped.set()
            thread.join()


def count_lines(path: Path) -> int:
    with path.open("rb") as log:
        return sum(1 for _ in log)


@pytest.mark.timeout(300)
def test_c1_kill_9_of_workers_loses_nothing_and_repeats_no_turn_before_a_checkpoint(
    here: Cluster, tmp_path: Path
) -> None:
    with mock_model(tmp_path, latency_ms=200) as model, here.workers(2, concurrency=40) as workers:
        killer = Killer(here, workers, KILLS, seed=11)
        with killer.running(lambda: count_lines(model.log)):
            summary = here.submit(*weather_run(tmp_path, model, JOBS)).finish()
        assert killer.killed == KILLS, "the faults must really happen"
        assert workers.restarts >= KILLS
        assert (summary["exit_code"], summary["ok"], summary["pending"]) == (0, JOBS, 0)
        records = here.records(summary["run_id"])
        check_one_ok_record_each(records, JOBS)
        repeated = check_no_turn_before_a_checkpoint_was_repeated(model)
        lost_attempts = sum(record["attempt"] - 1 for record in records)
        assert repeated <= lost_attempts, "at most the turn in flight is paid again, once for each lost attempt"
        here.check_nothing_held(summary["run_id"])


@pytest.mark.timeout(300)
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_f6_redis_stopped_and_started_twice_loses_nothing(here: Cluster, tmp_path: Path, how: signal.Signals) -> None:
    with mock_model(tmp_path, latency_ms=200) as model, here.workers(2, concurrency=40) as workers:
        submit = here.submit(*weather_run(tmp_path, model, JOBS))
        for restart in (1, 2):
            wait_for_requests(model.log, restart * JOBS)
            here.redis.stop(how)
            here.redis.start()
        summary = submit.finish()
        assert here.redis.starts == 3
        assert (summary["exit_code"], summary["ok"], summary["pending"]) == (0, JOBS, 0)
        check_one_ok_record_each(here.records(summary["run_id"]), JOBS)
        check_no_turn_before_a_checkpoint_was_repeated(model)
        here.check_nothing_held(summary["run_id"])
        assert all(worker.process.poll() is None for worker in workers.workers), "no worker died of it"


def wait_for_requests(log: Path, count: int, seconds: float = 120.0) -> None:
    done = threading.Event()
    waited = 0.0
    while count_lines(log) < count:
        done.wait(0.05)
        waited += 0.05
        assert waited < seconds, f"only {count_lines(log)} model calls"


@pytest.mark.timeout(300)
def test_f28_a_drained_worker_hands_its_jobs_on_at_once_and_no_turn_is_paid_twice(
    here: Cluster, tmp_path: Path
) -> None:
    with mock_model(tmp_path, latency_ms=300) as model, here.workers(2, concurrency=40) as workers:
        submit = here.submit(*weather_run(tmp_path, model, 120))
        for number in (0, 1):
            wait_for_requests(model.log, (number + 1) * 150)
            worker = workers.workers[number]
            worker.process.send_signal(signal.SIGTERM)
            assert worker.process.wait(40) == 0
        summary = submit.finish()
        records = here.records(summary["run_id"])
        check_one_ok_record_each(records, 120)
        assert any(record["attempt"] > 1 for record in records), "some conversations were handed on"
        assert check_no_turn_before_a_checkpoint_was_repeated(model) == 0
        here.check_nothing_held(summary["run_id"])
