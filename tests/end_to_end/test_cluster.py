"""A cluster end to end: the CLI feeds, two real workers run, records lie in the store, the ledger is clean."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import polars as pl
import pytest

from jobs.messages import message_template
from results.reading import shard_keys
from results.store import open_store
from tests.support.cluster import (
    Cluster,
    MockModel,
    check_no_turn_before_a_checkpoint_was_repeated,
    check_one_ok_record_each,
    cluster,
    mock_model,
)
from tests.support.object_store import ObjectStoreServer
from tests.support.weather_recipe import weather_run

JOBS = 200


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Cluster]:
    with cluster(tmp_path) as running:
        yield running


@pytest.fixture
def on_s3(tmp_path: Path, object_store_server: ObjectStoreServer, bucket_url: str) -> Iterator[Cluster]:
    with cluster(tmp_path, results=bucket_url, environment=object_store_server.environment) as running:
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


def test_a_cluster_with_an_s3_store_and_readers_that_are_not_ours(
    on_s3: Cluster, model: MockModel, tmp_path: Path
) -> None:
    with on_s3.workers(2):
        summary = on_s3.submit(*weather_run(tmp_path, model, 40)).finish()
    assert (summary["exit_code"], summary["ok"]) == (0, 40)
    check_one_ok_record_each(on_s3.records(summary["run_id"]), 40)
    store = open_store(on_s3.results)
    for number, key in enumerate(shard_keys(store, summary["run_id"])):
        (tmp_path / f"{number}.jsonl.zst").write_bytes(store.get(key))
    shards = str(tmp_path / "*.jsonl.zst")
    with duckdb.connect() as reader:
        reader.execute(f"select count(distinct index), sum(usage.model_calls) from read_json('{shards}')")
        counted = reader.fetchall()
    assert counted == [(40, 200)]
    assert sorted(pl.read_ndjson(shards)["index"].to_list()) == list(range(40))


def test_f32_messages_that_nobody_of_ours_wrote_start_nothing_and_stop_nobody(
    here: Cluster, model: MockModel, tmp_path: Path
) -> None:
    template = message_template("nobody", (), "conversations").decode()
    strangers = [
        "garbage",
        "[1, 2]",
        "{}",
        '{"body": 3}',
        "[" * 100_000,
        template.replace("@INDEX@", "0").replace("@TASK@", "nobody.000000").replace("@SENT@", "1"),
        template.replace("@INDEX@", '\\"zero\\"').replace("@TASK@", "x").replace("@SENT@", "1"),
        template.replace("parley.conversation", "os.system").replace("@INDEX@", "0"),
        template.replace("application/json", "application/x-python-serialize").replace("@INDEX@", "0"),
        template.replace('"body":"', '"body":"not json '),
    ]
    with here.workers(1) as workers, here.redis.client() as client:
        client.lpush("conversations", *strangers)
        summary = here.submit(*weather_run(tmp_path, model, 20)).finish()
        assert workers.restarts == 0
        assert client.llen("conversations") == 0
        assert b"garbage" in client.lrange("parley:refused", 0, -1), "set aside, to be looked at"
    assert (summary["exit_code"], summary["ok"]) == (0, 20)


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
