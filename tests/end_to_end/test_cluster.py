"""A cluster end to end: the CLI feeds, two real workers run, records lie in the store, the ledger is clean."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cluster import (
    Cluster,
    MockModel,
    check_no_turn_before_a_checkpoint_was_repeated,
    check_one_ok_record_each,
    cluster,
    mock_model,
)
from tests.support.weather_recipe import weather_run

JOBS = 200


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Cluster]:
    with cluster(tmp_path) as running:
        yield running


@pytest.fixture
def model(tmp_path: Path) -> Iterator[MockModel]:
    with mock_model(tmp_path) as serving:
        yield serving


def test_two_workers_make_every_conversation_once(here: Cluster, model: MockModel, tmp_path: Path) -> None:
    with here.workers(2) as workers:
        summary = here.submit(*weather_run(tmp_path, model, JOBS)).finish()
        assert (summary["exit_code"], summary["ok"], summary["pending"]) == (0, JOBS, 0)
        assert summary["usage"]["model_calls"] == JOBS * 5
        assert summary["usage"]["tool_calls"] == JOBS * 4
        records = here.records(summary["run_id"])
        check_one_ok_record_each(records, JOBS)
        assert here.stored_lines(summary["run_id"]) == JOBS
        assert check_no_turn_before_a_checkpoint_was_repeated(model) == 0
        here.check_nothing_held(summary["run_id"])
        assert workers.stop() == [0, 0]


def test_the_same_submit_again_feeds_nothing_and_tells_the_same(
    here: Cluster, model: MockModel, tmp_path: Path
) -> None:
    files = weather_run(tmp_path, model, 20)
    with here.workers(1):
        first = here.submit(*files).finish()
        asked = len(model.requests())
        again = here.submit(*files).finish()
    assert (again["run_id"], again["ok"], again["exit_code"]) == (first["run_id"], 20, 0)
    assert len(model.requests()) == asked
