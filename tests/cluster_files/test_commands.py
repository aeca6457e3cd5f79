"""The commands of compose.yaml and k8s/base do what they are there for: run here as plain processes."""

import json
import re
import subprocess
import time
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import redis

from results.reading import visible_records
from results.store import open_store
from tests.cluster_files.cluster_files import JSONObject, pods
from tests.cluster_files.conftest import SECRETS, Cluster
from tests.cluster_files.running import DEADLINE_SECONDS, Running, environment_with, running
from tests.support.redis_server import free_port

WORKERS = ["worker-conversations", "worker-namespace"]
READY = "worker ready"


def client(cluster: Cluster, role: str) -> "redis.Redis":
    password = SECRETS[f"PARLEY_{role.upper()}_PASSWORD"]
    return redis.Redis(port=cluster.redis_port, username=role, password=password, decode_responses=True)


@pytest.mark.parametrize("service", WORKERS)
def test_f28_a_compose_worker_starts_shows_its_pulse_and_ends_with_0_at_sigterm(
    cluster: Cluster, redis_service: Running, service: str
) -> None:
    with running(cluster.command(service), cluster.environment(service), cluster.checkout) as worker:
        assert '"events": true' in worker.wait_for(READY)
        queue = cluster.command(service)[cluster.command(service).index("-Q") + 1]
        assert f'"queues": ["{queue}"]' in worker.wait_for(READY)
        _wait_until_healthy(lambda: _healthcheck(cluster, service))

        assert worker.stop() == 0, worker.output
    assert "NOPERM" not in worker.output + redis_service.output


def _healthcheck(cluster: Cluster, service: str) -> "subprocess.CompletedProcess[str]":
    test = [cluster.here(word) for word in cluster.services[service]["healthcheck"]["test"]]
    assert test[0] == "CMD"
    return subprocess.run(test[1:], env=cluster.environment(service), text=True, timeout=10, check=False)


def _wait_until_healthy(check: "Callable[[], subprocess.CompletedProcess[str]]") -> None:
    """Ask again and again, as Docker and Kubernetes do: a file has no event to wait on."""
    give_up_at = time.monotonic() + DEADLINE_SECONDS
    while check().returncode != 0:
        assert time.monotonic() < give_up_at, "never healthy"
        time.sleep(0.1)


def test_the_pulse_of_a_worker_that_stands_still_is_noticed(cluster: Cluster) -> None:
    assert _healthcheck(cluster, "worker-conversations").returncode != 0, "no file yet"

    pulse = cluster.folder / "heartbeat"
    pulse.touch()
    assert _healthcheck(cluster, "worker-conversations").returncode == 0

    subprocess.run(["touch", "-d", "61 seconds ago", pulse], check=True)
    assert _healthcheck(cluster, "worker-conversations").returncode != 0


def _container(objects: list[JSONObject], name: str) -> JSONObject:
    containers: list[JSONObject] = dict(pods(objects))[name]["containers"]
    return containers[0]


@pytest.mark.parametrize("name", ["workers-conversations", "workers-namespace"])
def test_f28_a_kubernetes_worker_starts_shows_its_pulse_and_ends_with_0_at_sigterm(
    cluster: Cluster, redis_service: Running, objects: list[JSONObject], name: str
) -> None:
    container = _container(objects, name)
    environment = {**cluster.environment("worker-conversations"), "PARLEY_HEARTBEAT_FILE": f"{cluster.folder}/pulse"}
    with running(container["command"], environment, cluster.checkout) as worker:
        worker.wait_for(READY)
        for probe in ("startupProbe", "livenessProbe"):
            words = container[probe]["exec"]["command"]
            here = [word.replace("/run/parley/heartbeat", f"{cluster.folder}/pulse") for word in words]
            _wait_until_healthy(partial(subprocess.run, here, text=True, timeout=10, check=False))

        assert worker.stop() == 0, worker.output


def test_the_whole_compose_cluster_makes_the_conversations_of_the_weather_example(
    cluster: Cluster, redis_service: Running, store_service: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = "worker-conversations"
    with running(cluster.command(service), cluster.environment(service), cluster.checkout) as worker:
        worker.wait_for(READY)
        with running(cluster.command("feeder"), cluster.environment("feeder"), cluster.checkout) as feeder:
            assert feeder.process.wait(90) == 0, feeder.output + worker.output[-4000:]
        assert worker.stop() == 0, worker.output

    summary = json.loads(feeder.lines[-1])
    assert (summary["jobs"], summary["ok"], summary["pending"]) == (50, 50, 0)
    for name, value in cluster.environment("feeder").items():
        if name.startswith("AWS_"):
            monkeypatch.setenv(name, value)
    records = list(visible_records(open_store("s3://parley/runs"), summary["run_id"]))
    assert sorted(record["index"] for record in records) == list(range(50))
    said = "".join(one.output for one in (worker, feeder, redis_service, store_service))
    assert [secret for secret in SECRETS.values() if secret in said and secret != SECRETS["FLOWER_LOGIN"]] == []
    assert "NOPERM" not in said


def test_sec_s12_flower_shows_everything_to_who_may_and_changes_nothing(
    cluster: Cluster, redis_service: Running
) -> None:
    port = free_port()
    command = [word.replace("--port=5555", f"--port={port}") for word in cluster.command("flower")]
    with running([*command, "--address=127.0.0.1"], cluster.environment("flower"), cluster.checkout) as flower:
        flower.wait_for("Connected to redis")
        assert _status(port, "/healthcheck") == 200
        assert _status(port, "/metrics") == 200
        for path in ("/", "/workers", "/tasks", "/broker", "/api/workers", "/api/tasks", "/api/queues/length"):
            assert _status(port, path) == 401, path
            assert _status(port, path, login=True) == 200, path
        for path in ("shutdown/x", "pool/restart/x", "pool/grow/x", "queue/add-consumer/x"):
            assert _status(port, f"/api/worker/{path}", login=True, data=b"") == 403, path
        assert _status(port, "/api/task/revoke/x", login=True, data=b"") == 403
        assert flower.stop() == 0
    assert [secret for secret in SECRETS.values() if secret in flower.output and secret != "ops"] == []


def _status(port: int, path: str, *, login: bool = False, data: bytes | None = None) -> int:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data=data)
    if login:
        pair = f"{SECRETS['FLOWER_LOGIN']}:{SECRETS['FLOWER_PASSWORD']}".encode()
        request.add_header("Authorization", f"Basic {b64encode(pair).decode()}")
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code


def test_sec_s14_nobody_gets_into_redis_without_a_role(cluster: Cluster, redis_service: Running) -> None:
    with redis.Redis(port=cluster.redis_port) as stranger, pytest.raises(redis.AuthenticationError):
        stranger.ping()
    with (
        redis.Redis(port=cluster.redis_port, username="worker", password="guess") as guesser,
        pytest.raises(redis.AuthenticationError),
    ):
        guesser.ping()


def test_sec_s14_redis_does_not_start_open_when_its_roles_are_missing(cluster: Cluster) -> None:
    words = [word.replace("redis.acl", "missing.acl") for word in cluster.command("redis")]
    script = f"{words[-1].rstrip()} --bind 127.0.0.1 --port {cluster.redis_port}"

    with running([*words[:-1], script], cluster.environment("redis"), cluster.folder) as server:
        assert server.process.wait(20) != 0


@pytest.mark.parametrize("role", ["worker", "feeder", "flower"])
@pytest.mark.parametrize(
    "command",
    [
        ("FLUSHALL",), ("FLUSHDB",), ("CONFIG", "GET", "*"), ("KEYS", "*"), ("SHUTDOWN",), ("SLOWLOG", "GET"),
        ("ACL", "LIST"), ("MONITOR",), ("REPLICAOF", "NO", "ONE"), ("SAVE",), ("MODULE", "LIST"),
        ("GET", "somebody:elses"), ("SET", "somebody:elses", "1"), ("PUBLISH", "somebody-elses", "x"),
        ("PUBLISH", "/0.celery.pidbox", "shutdown"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_sec_s14_a_role_may_do_no_more_than_its_work(
    cluster: Cluster, redis_service: Running, role: str, command: tuple[str, ...]
) -> None:
    with client(cluster, role) as connection:
        assert connection.ping()
        with pytest.raises(redis.exceptions.NoPermissionError):
            connection.execute_command(*command)


def test_redis_keeps_what_it_was_told_and_evicts_nothing(cluster: Cluster, redis_service: Running) -> None:
    arguments = cluster.command("redis")[-1]

    assert re.search(r"--appendonly yes\b", arguments)
    assert re.search(r"--maxmemory-policy noeviction\b", arguments)
    assert (cluster.folder / "data" / "appendonlydir").exists() or (cluster.folder / "data" / "appendonly.aof").exists()


def test_sec_s13_the_shutdown_command_of_celery_reaches_no_worker(cluster: Cluster, redis_service: Running) -> None:
    service = "worker-conversations"
    environment = {**cluster.environment(service), "PARLEY_BROKER": cluster.environment("feeder")["PARLEY_BROKER"]}
    with running(cluster.command(service), cluster.environment(service), cluster.checkout) as worker:
        worker.wait_for(READY)
        shutdown = ["celery", "-A", "workers.app", "control", "--timeout", "1", "shutdown"]
        with running(shutdown, environment, cluster.checkout) as attempt:
            assert attempt.process.wait(60) != 0
        assert worker.process.poll() is None
        assert worker.stop() == 0


def test_the_programs_of_every_container_exist(services: dict[str, Any], objects: list[JSONObject]) -> None:
    commands = [
        service["command"] for name, service in services.items() if name not in {"redis", "store", "store-folder"}
    ]
    commands += [container["command"] for _, pod in pods(objects) for container in pod["containers"]]
    for program, *words in {(command[0], *command[1:4]) for command in commands}:
        verb = [word for word in words if word in {"worker", "flower", "submit"}]
        app = ["-A", "workers.app"] if program == "celery" else []
        outcome = subprocess.run(
            [program, *app, *verb, "--help"],
            env=environment_with({}), capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert outcome.returncode == 0, outcome.stderr
