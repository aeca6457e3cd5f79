"""A stateful backend that counts its own open sessions: never more than its permits, whatever dies."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cluster import Cluster, check_one_ok_record_each, cluster, mock_model, write_recipe
from tests.support.desk_backend import DeskBackend, desk_backend

STATEFUL = STATELESS = 300
PERMITS = 2

RECIPE = """
name: desks
model: {{provider: openai, model: mock, base_url: "{url}", api_key: none}}
tools:
  registry:
    - type: inline
      namespace: desk
      engine: desks
      tools:
        - name: take_note
          description: Writes a note on the desk of this conversation.
          parameters:
            type: object
            properties: {{note: {{type: string}}}}
            required: [note]
    - type: inline
      namespace: weather
      engine: weather
      tools:
        - name: get_weather
          description: The weather of a city.
          parameters:
            type: object
            properties: {{city: {{type: string}}}}
            required: [city]
  engines:
    desks: {{type: local, module: tests.support.desk_functions, setup: open_desk, teardown: close_desk}}
    weather: {{type: local, module: tests.support.weather_functions, inline: true}}
  namespaces:
    desk: {{stateful: true, max_concurrency: {permits}}}
"""


@pytest.fixture
def backend() -> Iterator[DeskBackend]:
    with desk_backend() as serving:
        yield serving


@pytest.fixture
def here(tmp_path: Path, backend: DeskBackend) -> Iterator[Cluster]:
    with cluster(tmp_path, environment={"DESK_PORT": str(backend.port)}) as running:
        yield running


def mixed_run(folder: Path, url: str, stateful: int, stateless: int) -> tuple[Path, Path]:
    """Stateful and stateless jobs, one after the other in the file."""
    jobs = []
    for number in range(max(stateful, stateless)):
        if number < stateful:
            jobs.append({"prompt": f"Note {number}.", "tools": ["desk::*"], "metadata": {"kind": "stateful"}})
        if number < stateless:
            jobs.append({"prompt": f"Weather {number}?", "tools": ["weather::*"], "metadata": {"kind": "stateless"}})
    return write_recipe(folder, RECIPE.format(url=url, permits=PERMITS), jobs)


@pytest.mark.timeout(300)
def test_d68_three_workers_never_open_more_sessions_than_the_limit_and_nobody_is_held_up(
    here: Cluster, backend: DeskBackend, tmp_path: Path
) -> None:
    queues = "conversations,ns.desk"
    with mock_model(tmp_path, latency_ms=10, turns=3) as model, here.workers(3, queues=queues, concurrency=20):
        summary = here.submit(*mixed_run(tmp_path, model.url, STATEFUL, STATELESS)).finish()
    jobs = STATEFUL + STATELESS
    assert (summary["exit_code"], summary["ok"]) == (0, jobs)
    assert backend.most == PERMITS, "the limit was reached and never passed"
    assert backend.opened == backend.closed == STATEFUL
    records = here.records(summary["run_id"])
    check_one_ok_record_each(records, jobs)
    finished = {
        kind: max(record["finished_at"] for record in records if record["metadata"]["kind"] == kind)
        for kind in ("stateful", "stateless")
    }
    assert finished["stateless"] < finished["stateful"], "those without a permit held up nobody"
    here.check_nothing_held(summary["run_id"], ["desk"])


@pytest.mark.timeout(300)
def test_f3_a_killed_holders_permit_goes_on_and_the_limit_still_holds(
    here: Cluster, backend: DeskBackend, tmp_path: Path
) -> None:
    queues = "conversations,ns.desk"
    with (
        mock_model(tmp_path, latency_ms=100, turns=3) as model,
        here.workers(3, queues=queues, concurrency=20) as workers,
    ):
        submit = here.submit(*mixed_run(tmp_path, model.url, 20, 20))
        killed = 0
        wait = threading.Event()
        while killed < 2:
            holders = holders_of_permits(here)
            for worker in workers.workers:
                if any(f"-{worker.process.pid}-" in holder for holder in holders):
                    worker.kill()
                    killed += 1
                    break
            wait.wait(0.2)
            assert submit.process.poll() is None, "the run ended before its holders were killed"
        summary = submit.finish()
        assert summary["ok"] == 40
        assert backend.most <= PERMITS
        assert backend.now == 0
        assert backend.opened == backend.closed
        here.check_nothing_held(summary["run_id"], ["desk"])


def holders_of_permits(here: Cluster) -> list[str]:
    """The fences of the claims that hold a permit of the backend; a fence names the worker's process."""
    with here.redis.client() as client:
        held = [entry.decode() for entry in client.zrange("parley:ns:desk:held", 0, -1)]
        fences = [client.hget(f"parley:run:{run}:owners", index) for run, _, index in (h.partition("/") for h in held)]
        return [fence.decode() for fence in fences if fence]
