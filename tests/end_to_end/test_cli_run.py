"""`parley run`: everything on one machine; interrupted or killed at any moment, the same command goes on (F41)."""

import contextlib
import json
import os
import random
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from producer.processes import ProcessIdentity
from results.reading import visible_records
from results.store import open_store
from tests.support.cluster import (
    PARLEY,
    MockModel,
    check_no_turn_before_a_checkpoint_was_repeated,
    check_one_ok_record_each,
    mock_model,
)
from tests.support.object_store import running_object_store

ROOT = Path(__file__).resolve().parents[2]
RECIPE = """
name: w
model: {{provider: openai, model: mock, base_url: "{url}"}}
conversation: {{max_turns: {max_turns}}}
tools:
  registry:
    - type: inline
      namespace: weather
      engine: local
      tools:
        - name: get_weather
          description: The weather of a city.
          parameters:
            type: object
            properties: {{city: {{type: string}}}}
            required: [city]
  engines:
    local: {{type: local, module: tests.support.weather_functions, inline: true}}
"""


@dataclass
class Started:
    """`parley run` as a process."""

    process: subprocess.Popen[str]

    def finish(self, seconds: float = 100) -> "Ended":
        out, err = self.process.communicate(timeout=seconds)
        summary = json.loads(out.splitlines()[-1]) if out.strip() else {}
        if summary:
            assert summary["jobs"] == sum(summary[name] for name in ("ok", "failed", "cancelled", "dead", "pending"))
        assert "Traceback" not in err
        return Ended(self.process.returncode, summary, out, err)

    def descendants(self) -> list[ProcessIdentity]:
        """Its Redis and its workers."""
        found = (ProcessIdentity.of(pid) for pid in children_of(self.process.pid))
        return [identity for identity in found if identity is not None]

    def descendant(self, name: str) -> int:
        """The process id of the one child in whose command line the name stands."""
        found = (identity.pid for identity in self.descendants())
        (pid,) = [pid for pid in found if name in Path(f"/proc/{pid}/cmdline").read_text()]
        return pid


@dataclass
class Ended:
    """How it ended."""

    exit_code: int
    summary: dict[str, Any]
    out: str
    err: str


@dataclass
class Desk:
    """A folder with a recipe, jobs, and the model server they use."""

    folder: Path
    model: MockModel
    jobs: int
    started: list[Started] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)

    def start(self, *arguments: str, stdin: str = "", options: tuple[str, ...] = ("--workers", "1")) -> Started:
        process = subprocess.Popen(
            # -P as for the installed `parley`: the working folder does not come before what is installed.
            [PARLEY[0], "-P", *PARLEY[1:], "run", "recipe.yaml", "--json", *options, *arguments],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PARLEY_SWEEP_SECONDS": "0.5", **self.environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert process.stdin is not None
        process.stdin.write(stdin)
        process.stdin.close()
        process.stdin = None
        self.started.append(Started(process))
        return self.started[-1]

    def run(self, *arguments: str, stdin: str = "") -> Ended:
        return self.start(*arguments, stdin=stdin).finish()

    def until_requests(self, count: int) -> None:
        """Wait until the model was asked so many times."""
        until(lambda: len(self.model.log.read_bytes().splitlines()) >= count)

    def check_complete(self, run_id: str) -> None:
        records = list(visible_records(open_store(str(self.folder / "runs")), run_id))
        check_one_ok_record_each(records, self.jobs)


def children_of(pid: int) -> list[int]:
    """The children of a process and theirs; none when it has ended."""
    children: list[int] = []
    for thread in Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(OSError):
            children += map(int, (thread / "children").read_text().split())
    return [*children, *(below for child in children for below in children_of(child))]


def until_all_ended(children: list[ProcessIdentity]) -> None:
    assert children
    until(lambda: not any(child.is_alive for child in children), seconds=20)


def until(is_so: Callable[[], bool], seconds: float = 60) -> None:
    give_up_at = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < give_up_at, "it did not happen in time"
        time.sleep(0.02)


def write_input(folder: Path, url: str, jobs: int, max_turns: int = 20) -> None:
    (folder / "recipe.yaml").write_text(RECIPE.format(url=url, max_turns=max_turns))
    lines = ({"id": f"job-{number}", "prompt": f"The weather in city {number}?"} for number in range(jobs))
    (folder / "jobs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def desk_with(folder: Path, *, jobs: int, latency_ms: float = 100) -> Iterator[Desk]:
    with mock_model(folder, latency_ms=latency_ms) as model:
        write_input(folder, model.url, jobs)
        desk = Desk(folder, model, jobs)
        yield desk
        for started in desk.started:
            if started.process.poll() is None:
                started.process.kill()
                started.process.communicate()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    yield from desk_with(tmp_path, jobs=60)


@pytest.fixture
def slow_desk(tmp_path: Path) -> Iterator[Desk]:
    """A model that answers after two minutes: nobody waits for it."""
    yield from desk_with(tmp_path, jobs=4, latency_ms=120_000)


def test_a_run_ends_with_one_json_object_on_stdout_and_everything_in_its_folder(desk: Desk) -> None:
    ended = desk.run("--workers", "2")
    assert ended.exit_code == 0, ended.err
    assert len(ended.out.splitlines()) == 1
    summary = ended.summary
    assert (summary["jobs"], summary["ok"], summary["pending"]) == (60, 60, 0)
    assert summary["usage"]["model_calls"] == 300
    assert summary["usage"]["tool_calls"] == 240
    assert summary["results"] == (desk.folder / "runs").as_uri()
    run = desk.folder / "runs" / summary["run_id"]
    assert {path.name for path in run.iterdir()} == {
        "manifest.json", "recipe.json", "input", "data", "redis", "logs", "run.lock",
    }  # fmt: skip
    desk.check_complete(summary["run_id"])


def test_the_same_command_again_makes_nothing_again(desk: Desk) -> None:
    first = desk.run()
    asked = len(desk.model.requests())
    second = desk.run()
    assert second.exit_code == 0
    assert "complete already" in second.err
    assert {**second.summary, "seconds": 0} == {**first.summary, "seconds": 0}
    assert len(desk.model.requests()) == asked


def test_jobs_that_fail_give_exit_code_4_and_stay_failed(desk: Desk) -> None:
    write_input(desk.folder, desk.model.url, 3, max_turns=2)
    for _ in range(2):
        ended = desk.run()
        assert ended.exit_code == 4
        assert (ended.summary["failed"], ended.summary["pending"]) == (3, 0)


def test_f41_ctrl_c_saves_what_is_under_way_and_prints_the_command_that_resumes(desk: Desk) -> None:
    started = desk.start("--concurrency", "20")
    desk.until_requests(60)
    children = started.descendants()
    started.process.send_signal(signal.SIGINT)
    ended = started.finish()
    assert ended.exit_code == 130
    assert ended.summary["pending"] > 0
    until_all_ended(children)

    printed = ended.err.strip().splitlines()[-1].strip()
    command = shlex.split(printed)
    assert command == ["parley", "run", "recipe.yaml", "--json", "--workers", "1", "--concurrency", "20"]
    resumed = desk.run(*command[-2:])
    assert resumed.exit_code == 0, resumed.err
    assert resumed.summary["run_id"] == ended.summary["run_id"]
    desk.check_complete(resumed.summary["run_id"])
    assert check_no_turn_before_a_checkpoint_was_repeated(desk.model) == 0, "a drained conversation repeats no call"


def test_f41_a_second_ctrl_c_ends_the_workers_at_once(slow_desk: Desk) -> None:
    started = slow_desk.start()
    slow_desk.until_requests(4)
    children = started.descendants()
    started.process.send_signal(signal.SIGINT)
    assert started.process.stderr is not None
    while "interrupted" not in started.process.stderr.readline():
        pass
    started.process.send_signal(signal.SIGINT)
    ended = started.finish(15)
    assert ended.exit_code == 130
    assert ended.summary["pending"] == 4
    until_all_ended(children)


def test_f41_jobs_that_came_by_stdin_are_resumed_from_the_store(desk: Desk) -> None:
    started = desk.start("--jobs", "-", "--concurrency", "10", stdin=(desk.folder / "jobs.jsonl").read_text())
    desk.until_requests(30)
    started.process.send_signal(signal.SIGINT)
    ended = started.finish()
    command = shlex.split(ended.err.strip().splitlines()[-1])
    assert command[-3:] == ["--run-id", ended.summary["run_id"], "--resume"]
    resumed = desk.run(*command[-3:])
    assert resumed.exit_code == 0, resumed.err
    desk.check_complete(ended.summary["run_id"])


def test_f41_kill_9_at_any_moment_leaves_no_child_and_the_same_command_goes_on(desk: Desk) -> None:
    chance = random.Random(41)
    for _ in range(4):
        started = desk.start("--concurrency", "15")
        desk.until_requests(len(desk.model.requests()) + chance.randrange(1, 50))
        children = started.descendants()
        started.process.kill()
        started.process.communicate()
        until_all_ended(children)
    ended = desk.run("--concurrency", "15")
    assert ended.exit_code == 0, ended.err
    desk.check_complete(ended.summary["run_id"])
    repeated = check_no_turn_before_a_checkpoint_was_repeated(desk.model)
    assert repeated <= 4 * 15, "only calls that were under way at a kill are made again"


def test_f41_what_outlived_a_killed_run_is_ended_by_the_next_start(desk: Desk) -> None:
    """Where the kernel cannot tie children to their parent, the note in the run's folder finds them."""
    ended = desk.run()
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True) as leftover:
        identity = ProcessIdentity.of(leftover.pid)
        assert identity is not None
        run = desk.folder / "runs" / ended.summary["run_id"]
        note = {"broker": None, "processes": [{"pid": identity.pid, "started": identity.started}]}
        (run / "children.json").write_text(json.dumps(note))
        for shard in (run / "data").rglob("*.zst"):
            shard.unlink()
        assert desk.run().exit_code == 0
        assert leftover.wait(20) == -signal.SIGKILL


def test_a_worker_that_is_killed_is_replaced_and_its_jobs_go_on_at_once(desk: Desk) -> None:
    started = desk.start("--concurrency", "10")
    desk.until_requests(30)
    os.kill(started.descendant("worker_entry.py"), signal.SIGKILL)
    ended = started.finish(50)  # Well below the lease of 60 s.
    assert ended.exit_code == 0, ended.err
    assert "worker 1 ended (killed by signal 9)" in ended.err
    desk.check_complete(ended.summary["run_id"])
    assert check_no_turn_before_a_checkpoint_was_repeated(desk.model) <= 10


def test_the_private_redis_may_die_without_harm(desk: Desk) -> None:
    started = desk.start("--concurrency", "10")
    desk.until_requests(30)
    os.kill(started.descendant("-server"), signal.SIGKILL)
    ended = started.finish()
    assert ended.exit_code == 0, ended.err
    desk.check_complete(ended.summary["run_id"])


def test_a_second_run_of_the_same_run_is_told_who_is_at_it(desk: Desk) -> None:
    first = desk.start("--concurrency", "10")
    desk.until_requests(10)
    second = desk.run("--concurrency", "10")
    assert second.exit_code == 3
    assert f"is being made by process {first.process.pid} on" in second.err
    assert second.out == ""
    assert first.finish().exit_code == 0


def test_status_tells_the_counts_of_this_moment_while_the_run_is_made(slow_desk: Desk) -> None:
    slow_desk.start()
    slow_desk.until_requests(4)
    (run,) = (slow_desk.folder / "runs").iterdir()
    said = subprocess.run(
        [*PARLEY, "status", str(run)], cwd=slow_desk.folder, capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert "4 jobs: 0 ok, 4 pending" in said.stdout
    assert "4 in flight" in said.stderr


def test_a_redis_of_the_users_is_used_when_it_is_named(desk: Desk, shared_redis_url: str) -> None:
    ended = desk.run("--broker", shared_redis_url)
    assert ended.exit_code == 0, ended.err
    desk.check_complete(ended.summary["run_id"])
    assert not (desk.folder / "runs" / ended.summary["run_id"] / "redis").exists()


def test_packages_of_the_users_named_like_ours_do_not_hide_ours(desk: Desk) -> None:
    for name in ("jobs", "results", "workers", "engines", "conversations", "producer"):
        (desk.folder / name).mkdir()
        (desk.folder / name / "__init__.py").write_text(f"raise RuntimeError('the wrong {name}')\n")
    (desk.folder / "acme.py").write_text("def get_weather(city: str) -> dict:\n    return {'city': city}\n")
    recipe = (desk.folder / "recipe.yaml").read_text().replace("tests.support.weather_functions", "acme")
    (desk.folder / "recipe.yaml").write_text(recipe)
    ended = desk.run()
    assert ended.exit_code == 0, ended.err
    desk.check_complete(ended.summary["run_id"])


def test_a_run_into_s3_keeps_its_redis_and_logs_beside_the_user(desk: Desk, tmp_path: Path) -> None:
    with running_object_store(tmp_path / "s3.log") as server:
        url = f"s3://{server.make_bucket()}/made/here"
        desk.environment = server.environment
        ended = desk.run("--results", url)
        assert ended.exit_code == 0, ended.err
        assert ended.summary["results"] == url
        run_id = ended.summary["run_id"]
        assert {path.name for path in (desk.folder / ".parley" / run_id).iterdir()} >= {"redis", "logs", "run.lock"}
        status = subprocess.run(
            [*PARLEY, "status", run_id, "--results", url, "--json"],
            cwd=desk.folder, env={**os.environ, **server.environment, "PYTHONPATH": str(ROOT)},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert json.loads(status.stdout)["ok"] == 60
