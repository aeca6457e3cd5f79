"""Flower, started with Celery's own command, shows workers and jobs of a cluster by name, and no conversation."""

import json
import os
import re
import subprocess
import sys
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.support.cluster import Cluster, cluster, mock_model
from tests.support.redis_server import RedisServer, free_port
from tests.support.weather_recipe import weather_run
from tests.support.worker_process import ROOT

JOBS = 20
CANARY = "What is the weather in city"  # begins every prompt of the run


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Cluster]:
    with cluster(tmp_path) as running:
        yield running


class Flower:
    """A running Flower; pages are asked for with its password."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def get(self, path: str, *, password: str | None = "pw", method: str = "GET") -> str:
        request = Request(self.url + path, method=method)
        if password:
            request.add_header("Authorization", "Basic " + b64encode(f"ops:{password}".encode()).decode())
        with urlopen(request, timeout=20) as answer:
            return str(answer.read().decode())

    def wait_until(self, path: str, is_there: Callable[[Any], object]) -> Any:
        """Ask for a page until it shows what is wanted."""
        seen: Any = None

        def asked() -> bool:
            nonlocal seen
            try:
                seen = json.loads(self.get(path))
            except OSError:  # not up yet
                return False
            return bool(is_there(seen))

        assert self.wait(asked), f"{path}: {str(seen)[:2000]}"
        return seen

    def wait(self, holds: Callable[[], object], seconds: float = 60) -> bool:
        deadline = time.monotonic() + seconds
        pause = threading.Event()
        while not holds():
            if time.monotonic() > deadline:
                return False
            pause.wait(0.1)
        return True


@contextmanager
def flower(server: RedisServer) -> Iterator[Flower]:
    """Run Flower for the block; it listens to events when the block begins."""
    port = free_port()
    with subprocess.Popen(
        [
            sys.executable, "-m", "celery", "-A", "workers.app", "flower", "--address=127.0.0.1", f"--port={port}",
            "--basic-auth=ops:pw", "--read-only", "--inspect-timeout=2000",
        ],
        cwd=ROOT,
        env={**os.environ, "PARLEY_BROKER": server.url},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        try:
            running = Flower(port)
            running.wait_until("/api/workers", lambda _: True)
            with server.client() as client:
                running.wait(lambda: client.pubsub_numpat() or client.pubsub_channels())
            yield running
        finally:
            process.kill()


def test_flower_lists_workers_and_jobs_under_readable_names_without_their_content(
    here: Cluster, tmp_path: Path
) -> None:
    with flower(here.redis) as seen, mock_model(tmp_path, latency_ms=5, turns=3) as model:
        with here.workers(1, name="conversations@%h"):
            summary = here.submit(*weather_run(tmp_path, model, JOBS)).finish()
            run = summary["run_id"]

            def all_ended(tasks: dict[str, Any]) -> bool:
                return [task["state"] for task in tasks.values()] == ["SUCCESS"] * JOBS

            tasks = seen.wait_until("/api/tasks", all_ended)
            workers = seen.wait_until("/api/workers?refresh=1", bool)
        assert set(tasks) == {f"{run}.{index:06d}" for index in range(JOBS)}
        assert {task["name"] for task in tasks.values()} == {"parley.conversation"}
        assert {task["result"] for task in tasks.values()} == {"'ok'"}
        assert any(name.startswith("conversations@") for name in workers)
        shown = json.dumps(tasks) + seen.get("/tasks") + seen.get(f"/task/{run}.000003") + seen.get("/workers")
        assert f"{run}.000003" in shown
        assert CANARY not in shown
        assert not re.search(r"weather in city|get_weather|celsius", shown)


def test_sec_s12_without_a_password_nothing_is_shown_and_with_it_nothing_can_be_done(here: Cluster) -> None:
    with flower(here.redis) as seen:
        for path in ("/", "/api/tasks", "/api/workers", "/tasks", "/broker"):
            assert refusal(lambda path=path: seen.get(path, password=None)) == 401  # type: ignore[misc]
        for path in ("/api/worker/shutdown/any", "/api/task/revoke/any", "/api/worker/pool/grow/any"):
            assert refusal(lambda path=path: seen.get(path, method="POST")) in {403, 405}  # type: ignore[misc]


def refusal(ask: Callable[[], str]) -> int:
    """The status of a refused request."""
    with pytest.raises(HTTPError) as refused:
        ask()
    with refused.value:
        return refused.value.code
