"""The asyncio pool in a real worker process on a real Redis."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.support.redis_server import RedisServer, redis_server
from tests.support.worker_process import WorkerProcess, worker_process


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    folder: Path = tmp_path_factory.mktemp("redis")
    with redis_server(folder) as running:
        yield running


@pytest.fixture
def client(server: RedisServer) -> Iterator[redis.Redis]:
    with server.client() as opened:
        opened.flushall()
        yield opened


@pytest.fixture
def worker(server: RedisServer, client: redis.Redis) -> Iterator[WorkerProcess]:
    with worker_process(server.url, app="tests.support.pool_app", ready="ready.", concurrency=20) as running:
        yield running


@pytest.fixture
def send(server: RedisServer) -> Iterator[Any]:
    os.environ["PARLEY_BROKER"] = server.url
    from celery import Celery

    from jobs.celery_app import configuration
    from jobs.settings import BrokerSettings

    app = Celery("sender", broker=server.url, amqp="jobs.celery_app:DeliverOnceAMQP")
    app.conf.update(configuration(BrokerSettings(broker=server.url)))
    yield lambda name, *arguments, **options: app.send_task(name, arguments, **options)
    app.close()
    del os.environ["PARLEY_BROKER"]


def told(client: redis.Redis, beginning: str) -> str:
    """Wait until a task tells something that begins so."""
    for _ in range(400):
        answer: Any = client.blpop(["told"], timeout=20)
        assert answer is not None, f"nobody told {beginning!r}"
        if answer[1].decode().startswith(beginning):
            return str(answer[1].decode())
    raise AssertionError(beginning)


def test_a_coroutine_task_runs_through_celerys_tracer_with_its_own_request(
    worker: WorkerProcess, client: redis.Redis, send: Any
) -> None:
    send("echo", "hello", task_id="RUN.000042")
    assert told(client, "opened")
    assert told(client, "prerun") == "prerun RUN.000042"
    assert told(client, "echo") == "echo hello RUN.000042"
    assert told(client, "postrun") == "postrun RUN.000042 SUCCESS"


def test_tasks_run_at_the_same_time_up_to_the_concurrency(
    worker: WorkerProcess, client: redis.Redis, send: Any
) -> None:
    for _ in range(20):
        send("meet", 20)
    assert told(client, "met") == "met"


def test_a_plain_task_and_a_failing_one_do_not_disturb_the_others(
    worker: WorkerProcess, client: redis.Redis, send: Any
) -> None:
    send("fail", task_id="failing")
    assert told(client, "postrun failing") == "postrun failing FAILURE"
    send("leave")
    send("plain", "word")
    assert told(client, "plain") == "plain word"
    send("echo", "still here")
    assert told(client, "echo")
    assert worker.process.poll() is None


def test_a_task_that_was_cancelled_by_nobody_gives_its_slot_back(
    worker: WorkerProcess, client: redis.Redis, send: Any
) -> None:
    for _ in range(25):  # more than the worker has slots
        send("cancels_itself")
    send("echo", "still here")
    assert told(client, "echo")


def test_a_soft_time_limit_reaches_the_coroutine(worker: WorkerProcess, client: redis.Redis, send: Any) -> None:
    send("limited")
    assert told(client, "soft limit")


def test_sigterm_drains_the_tasks_closes_the_lifespan_and_exits_with_0(
    worker: WorkerProcess, client: redis.Redis, send: Any
) -> None:
    send("until_drained", task_id="draining")
    told(client, "waiting")
    assert worker.terminate() == 0
    rest = [entry.decode() for entry in client.lrange("told", 0, -1)]  # type: ignore[union-attr]
    assert rest == ["drained", "postrun draining SUCCESS", "closed"]


def test_a_task_that_does_not_stop_is_cancelled_when_the_drain_is_over(
    worker: WorkerProcess, client: redis.Redis, send: Any
) -> None:
    send("stubborn")
    told(client, "stubborn")
    assert worker.terminate() == 0
    rest = [entry.decode() for entry in client.lrange("told", 0, -1)]  # type: ignore[union-attr]
    assert "cancelled" in rest
    assert rest[-1] == "closed"


def test_the_broker_holds_no_unacknowledged_message(worker: WorkerProcess, client: redis.Redis, send: Any) -> None:
    send("until_drained")
    told(client, "waiting")
    keys = [key.decode() for key in client.keys("*")]  # type: ignore[union-attr]
    assert not [key for key in keys if key.startswith("unacked")]


def test_a_queue_that_nobody_declared_holds_no_unacknowledged_message_either(
    server: RedisServer, client: redis.Redis, send: Any
) -> None:
    with worker_process(server.url, app="tests.support.pool_app", ready="ready.", queues="ns.hr_api"):
        send("until_drained", queue="ns.hr_api")
        told(client, "waiting")
        assert client.exists("unacked") == 0


def test_a_message_on_the_wire_is_plain_json(worker: WorkerProcess, client: redis.Redis, send: Any) -> None:
    """What feeds the queues by script must look like what kombu itself reads and writes."""
    from jobs.messages import message_template

    template = json.loads(message_template("RUN", (), "conversations"))
    send("plain", "x", queue="elsewhere")
    (raw,) = client.lrange("elsewhere", 0, -1)
    by_kombu = json.loads(raw)
    assert set(template) == set(by_kombu)
    assert set(template["headers"]) == set(by_kombu["headers"])
    assert set(by_kombu["properties"]) - set(template["properties"]) == {"body_encoding", "reply_to"}
