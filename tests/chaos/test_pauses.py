"""A thousand conversations wait for answers from outside: nothing is held, whoever dies, and one answer wins."""

import random
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from producer.external import ExternalTools
from tests.support.cluster import Cluster, Submit, check_calls_are_answered, cluster, write_recipe
from tests.support.desk_backend import DeskBackend, desk_backend

PERMITS = 40
QUEUES = "conversations,ns.desk"
RECIPE = f"""
name: people
model: {{provider: offline, model: mock, offline: {{turns: 2}}}}
conversation: {{external: {{deadline_seconds: 3600}}}}
tools:
  registry:
    - type: inline
      namespace: people
      engine: external
      tools:
        - name: ask_person
          description: Asks a person.
          parameters: {{type: object, properties: {{question: {{type: string}}}}, required: [question]}}
          output_parameters: {{type: object, properties: {{said: {{type: string}}}}, required: [said]}}
    - type: inline
      namespace: desk
      engine: desks
      tools:
        - name: take_note
          description: Writes a note on the desk of this conversation.
          parameters: {{type: object, properties: {{note: {{type: string}}}}, required: [note]}}
  engines:
    desks: {{type: local, module: tests.support.desk_functions, setup: open_desk, teardown: close_desk}}
  namespaces:
    desk: {{stateful: true, max_concurrency: {PERMITS}}}
"""


@pytest.fixture
def backend() -> Iterator[DeskBackend]:
    with desk_backend() as serving:
        yield serving


@pytest.fixture
def here(tmp_path: Path, backend: DeskBackend) -> Iterator[Cluster]:
    with cluster(tmp_path, environment={"DESK_PORT": str(backend.port)}) as running:
        yield running


def submit_people(here: Cluster, folder: Path, jobs: int, *tools: str) -> Submit:
    only = {"tools": tools} if tools else {}
    lines = [{"id": f"job-{number}", "prompt": f"Ask person {number}, please.", **only} for number in range(jobs)]
    return here.submit(*write_recipe(folder, RECIPE, lines), "--run-id", "people")


def wait_until_paused(here: Cluster, submit: Submit, jobs: int) -> None:
    wait = threading.Event()
    with here.redis.client() as client:
        while client.hlen("parley:run:people:paused") < jobs:
            assert submit.process.poll() is None, "the run ended"
            wait.wait(0.1)


def check_nothing_is_held_while_paused(here: Cluster, backend: DeskBackend, jobs: int) -> None:
    """No claim, place in the window, checkpoint, permit, message, session: only the paused set itself."""
    here.check_nothing_held("people", ["desk"])
    with here.redis.client() as client:
        base = "parley:run:people"
        assert client.hlen(f"{base}:paused") == jobs
        for queue in QUEUES.split(","):
            assert client.llen(queue) == 0
        assert client.zcard(f"{base}:later") == 0
        assert client.keys(f"{base}:session:*") == []
        assert client.zcard("parley:sessions") == 0
        allowed = {f"{base}:{key}".encode() for key in ("deadlines", "paused", "sweeper", "feeder", "tokens")}
        kept = {key for key in client.keys(f"{base}:*") if b":awaited:" not in key}
        assert kept <= allowed, "what is kept is small, and the same for all"
    assert backend.now == 0


class Caller:
    """Answers everything that waits, in an order of its own."""

    def __init__(self, here: Cluster, number: int) -> None:
        self.here, self.number = here, number
        self.outcomes: Counter[str] = Counter()
        self.won: set[str] = set()

    def run(self) -> None:
        with ExternalTools("people", broker=self.here.redis.url) as tools:
            jobs = tools.pending()
            random.Random(self.number).shuffle(jobs)
            for job in jobs:
                given = {call.call_id: {"said": f"caller {self.number}"} for call in job.calls}
                answers = tools.answer(job.index, given)
                self.outcomes.update(answers.calls.values())
                self.won.update(answers.accepted)


def answer_with(here: Cluster, count: int) -> list[Caller]:
    callers = [Caller(here, number) for number in range(count)]
    with ThreadPoolExecutor(count) as pool:
        for done in [pool.submit(caller.run) for caller in callers]:
            done.result()
    return callers


def end_time_of(here: Cluster, indices: range) -> None:
    """The time of these jobs' calls is over."""
    with here.redis.client() as client:
        for index in indices:
            for name, value in client.hgetall(f"parley:run:people:awaited:{index}").items():
                if value.startswith(b"?"):
                    client.hset(f"parley:run:people:awaited:{index}", name, "?1")


def results_by_call(records: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {entry["call_id"]: entry for record in records for entry in record["tool_results"]}


@pytest.mark.timeout(240)
def test_c10_f39_a_thousand_paused_conversations_outlive_all_workers_and_five_callers_compete(
    here: Cluster, backend: DeskBackend, tmp_path: Path
) -> None:
    jobs, late = 1000, range(0, 1000, 20)
    with here.workers(2, queues=QUEUES, concurrency=100):
        submit = submit_people(here, tmp_path, jobs)
        wait_until_paused(here, submit, jobs)
        check_nothing_is_held_while_paused(here, backend, jobs)
        assert backend.most <= PERMITS
    # Every worker was killed. Nobody is there, and the answers are taken all the same.
    check_nothing_is_held_while_paused(here, backend, jobs)
    end_time_of(here, late)
    callers = answer_with(here, 5)
    with here.workers(2, queues=QUEUES, concurrency=100):
        summary = submit.finish()
    assert (summary["exit_code"], summary["ok"]) == (0, jobs)

    outcomes = sum((caller.outcomes for caller in callers), Counter[str]())
    in_time = jobs - len(late)
    assert outcomes["accepted"] == in_time, "each call has one winner"
    assert set(outcomes) <= {"accepted", "answered", "late"}
    records = here.records("people")
    assert Counter(record["index"] for record in records) == Counter(range(jobs))
    results = results_by_call(records)
    for caller in callers:
        assert {results[call_id]["result"]["said"] for call_id in caller.won} <= {f"caller {caller.number}"}
    assert sum(len(caller.won) for caller in callers) == in_time
    timeouts = [record["index"] for record in records if record["tool_results"][0]["error_type"] == "timeout"]
    assert sorted(timeouts) == list(late)
    for record in records:
        check_calls_are_answered(record["messages"])
    here.check_nothing_held("people", ["desk"])
    with here.redis.client() as client:
        assert client.keys("parley:run:people:awaited:*") == []
    assert backend.now == 0
    assert backend.opened == backend.closed == 2 * jobs, "one session before the pause, one after"


@pytest.mark.timeout(120)
def test_c3_c10_redis_is_wiped_while_conversations_are_paused_and_half_answered(
    here: Cluster, backend: DeskBackend, tmp_path: Path
) -> None:
    jobs = 100
    with here.workers(1, queues=QUEUES, concurrency=50) as workers:
        submit = submit_people(here, tmp_path, jobs, "people::*")
        wait_until_paused(here, submit, jobs)
        with ExternalTools("people", broker=here.redis.url) as tools:
            waiting = tools.pending()
            workers.workers[0].process.send_signal(signal.SIGSTOP)  # it must not go on before Redis is wiped
            for job in waiting[:50]:
                assert tools.answer(job.index, {job.calls[0].call_id: {"said": "before"}}).job == "resumed"
            with here.redis.client() as client:
                client.flushall()
            workers.workers[0].process.send_signal(signal.SIGCONT)
            wait_until_paused(here, submit, 50)
            left = tools.pending()
            assert {job.index for job in left} == {job.index for job in waiting[50:]}
            for job in left:
                assert tools.answer(job.task_id, {job.calls[0].call_id: {"said": "after"}}).accepted
        summary = submit.finish()
    assert (summary["exit_code"], summary["ok"]) == (0, jobs)
    results = results_by_call(here.records("people"))
    before = {call.call_id for job in waiting[:50] for call in job.calls}
    assert {call_id: entry["result"]["said"] for call_id, entry in results.items()} == {
        call_id: "before" if call_id in before else "after" for call_id in results
    }
    here.check_nothing_held("people", ["desk"])
