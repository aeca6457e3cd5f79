"""`parley submit`: feeds a cluster; broken off or killed, the same command goes on and repeats nothing (F35)."""

import shlex
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from results.manifest import read_manifest
from results.store import open_store
from tests.support.cluster import (
    Cluster,
    MockModel,
    check_one_ok_record_each,
    cluster,
    mock_model,
    write_recipe,
)

JOBS = 80
RECIPE = """
name: fed
model: {{provider: openai, model: mock, base_url: "{url}", api_key: "${{PARLEY_TEST_MODEL_KEY}}"}}
tools:
  registry:
    - type: inline
      namespace: weather
      engine: local
      tools:
        - name: get_weather
          description: The weather of a city.
          parameters: {{type: object, properties: {{city: {{type: string}}}}, required: [city]}}
  engines:
    local: {{type: local, module: tests.support.weather_functions, inline: true}}
"""


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Cluster]:
    with cluster(tmp_path) as running:
        yield running


@pytest.fixture
def model(tmp_path: Path) -> Iterator[MockModel]:
    with mock_model(tmp_path, latency_ms=50) as serving:
        yield serving


@pytest.fixture
def recipe_and_jobs(tmp_path: Path, model: MockModel) -> tuple[Path, Path]:
    jobs = ({"id": f"job-{number}", "prompt": f"The weather in city {number}?"} for number in range(JOBS))
    return write_recipe(tmp_path, RECIPE.format(url=model.url), jobs)


WORKER_SECRET = {"PARLEY_TEST_MODEL_KEY": "only the workers know it"}


def test_sec_s11_a_secret_that_only_the_workers_know_is_named_and_not_asked_for(
    here: Cluster, recipe_and_jobs: tuple[Path, Path]
) -> None:
    with here.workers(1, environment=WORKER_SECRET):
        summary = here.submit(*recipe_and_jobs).finish()
    assert summary["exit_code"] == 0, summary["stderr"]
    assert "the workers must have them: PARLEY_TEST_MODEL_KEY" in summary["stderr"]
    check_one_ok_record_each(here.records(summary["run_id"]), JOBS)
    secret = next(iter(WORKER_SECRET.values())).encode()
    stored = [path for path in Path(here.results).rglob("*") if path.is_file()]
    assert stored
    assert [path for path in stored if secret in path.read_bytes()] == []


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_f35_a_feeder_that_is_broken_off_prints_the_command_that_resumes(
    here: Cluster, recipe_and_jobs: tuple[Path, Path], how: signal.Signals
) -> None:
    submit = here.submit(*recipe_and_jobs)
    assert submit.process.stderr is not None
    assert f"{JOBS} jobs" in _line_with(submit.process.stderr, "jobs")
    submit.process.send_signal(how)
    summary = submit.finish()
    assert summary["exit_code"] == 130
    assert summary["pending"] == JOBS
    command = shlex.split(summary["stderr"].strip().splitlines()[-1])
    assert command[:3] == ["parley", "submit", str(recipe_and_jobs[0])]

    with here.workers(1, environment=WORKER_SECRET):
        again = here.submit(*recipe_and_jobs).finish()
    assert again["run_id"] == summary["run_id"]
    assert (again["exit_code"], again["ok"]) == (0, JOBS)


def test_f35_a_feeder_that_is_killed_is_followed_by_the_same_command(
    here: Cluster, recipe_and_jobs: tuple[Path, Path], model: MockModel
) -> None:
    with here.workers(1, environment=WORKER_SECRET):
        for _ in range(3):
            submit = here.submit(*recipe_and_jobs)
            assert submit.process.stderr is not None
            _line_with(submit.process.stderr, "jobs")
            submit.process.kill()
            submit.process.communicate()
        summary = here.submit(*recipe_and_jobs).finish()
    assert summary["exit_code"] == 0, summary["stderr"]
    check_one_ok_record_each(here.records(summary["run_id"]), JOBS)
    assert here.stored_lines(summary["run_id"]) == JOBS
    assert len(model.requests()) == JOBS * 5, "a feeder that dies costs no model call"


def test_f36_two_that_submit_the_same_at_once_make_one_run(here: Cluster, recipe_and_jobs: tuple[Path, Path]) -> None:
    with here.workers(1, environment=WORKER_SECRET):
        both = [here.submit(*recipe_and_jobs) for _ in range(2)]
        first, second = (submit.finish() for submit in both)
    assert first["run_id"] == second["run_id"]
    assert [first["exit_code"], second["exit_code"]] == [0, 0], first["stderr"] + second["stderr"]
    assert here.stored_lines(first["run_id"]) == JOBS
    assert read_manifest(open_store(here.results), first["run_id"]) is not None


def _line_with(stream: Iterator[str], text: str) -> str:
    """Read the stream until a line holds the text."""
    return next(line for line in stream if text in line)
