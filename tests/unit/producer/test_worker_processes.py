"""Workers are started again when they die, given up when they cannot live, drained or killed at the end."""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from producer import worker_processes
from producer.errors import WorkersKeepDying
from producer.worker_processes import WorkerProcesses, WorkerSettings


@dataclass(frozen=True, slots=True)
class Scripted(WorkerSettings):
    """Workers that run a Python script instead of Celery."""

    script: str = ""

    def command(self, number: int) -> list[str]:
        return [sys.executable, "-c", self.script, str(number)]


def scripted(script: str, folder: Path) -> Scripted:
    return Scripted("r1", ["conversations"], 5, {"PARLEY_BROKER": "redis://x"}, folder / "logs", script=script)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_processes, "_FIRST_PAUSE_SECONDS", 0.01)


POLITE = (
    "import signal, sys, time\n"
    "signal.signal(signal.SIGTERM, lambda *_: (print('drained'), sys.exit(0)))\n"
    "print('up', flush=True); time.sleep(600)\n"
)
STUBBORN = POLITE.replace("lambda *_: (print('drained'), sys.exit(0))", "signal.SIG_IGN")


class Starts:
    """The workers that were started, as events to wait for."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[tuple[int, int]] = asyncio.Queue()

    def __call__(self, number: int, pid: int) -> None:
        self.queue.put_nowait((number, pid))

    async def next(self) -> tuple[int, int]:
        return await asyncio.wait_for(self.queue.get(), 30)


async def until_up(settings: WorkerSettings, numbers: Sequence[int] = (1,), count: int = 1) -> None:
    for number in numbers:
        while not (path := settings.log_path(number)).exists() or path.read_text().count("up") < count:
            await asyncio.sleep(0.01)


async def test_draining_asks_the_workers_to_stop_and_waits_for_them(tmp_path: Path) -> None:
    settings, starts = scripted(POLITE, tmp_path), Starts()
    workers = WorkerProcesses(settings, 2, on_start=starts)
    running = asyncio.create_task(workers.keep_running())
    await starts.next()
    await starts.next()
    await until_up(settings, (1, 2))
    assert await workers.drain(20)
    await asyncio.wait_for(running, 20)
    assert [settings.log_path(number).read_text() for number in (1, 2)] == ["up\ndrained\n"] * 2


async def test_a_worker_that_does_not_stop_in_time_is_killed(tmp_path: Path) -> None:
    settings = scripted(STUBBORN, tmp_path)
    workers = WorkerProcesses(settings, 1)
    running = asyncio.create_task(workers.keep_running())
    await until_up(settings)
    assert not await workers.drain(0.05)
    await asyncio.wait_for(running, 20)


async def test_a_worker_that_is_killed_is_started_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings, starts = scripted(POLITE, tmp_path), Starts()
    workers = WorkerProcesses(settings, 1, on_start=starts)
    running = asyncio.create_task(workers.keep_running())
    _, pid = await starts.next()
    os.kill(pid, signal.SIGKILL)
    assert (await starts.next())[0] == 1
    assert "killed by signal 9" in capsys.readouterr().err
    workers.kill()
    await asyncio.wait_for(running, 20)


async def test_a_worker_that_cannot_live_is_given_up_with_the_end_of_its_log(tmp_path: Path) -> None:
    settings = scripted("raise SystemExit('no module named acme')", tmp_path)
    with pytest.raises(WorkersKeepDying, match="no module named acme"):
        await asyncio.wait_for(WorkerProcesses(settings, 1).keep_running(), 60)


async def test_when_one_worker_is_given_up_the_others_end(tmp_path: Path) -> None:
    script = POLITE.replace(
        "import signal, sys, time\n", "import signal, sys, time\nif sys.argv[1] == '2': sys.exit(3)\n"
    )
    settings = scripted(script, tmp_path)
    workers = WorkerProcesses(settings, 2)
    with pytest.raises(WorkersKeepDying, match=r"worker 2 .*exit code 3"):
        await asyncio.wait_for(workers.keep_running(), 60)
    assert workers.pids == []


async def test_workers_get_the_broker_by_their_environment_and_not_by_their_command_line(tmp_path: Path) -> None:
    settings = scripted("import os; print(os.environ['PARLEY_BROKER'], 'up', flush=True); " + POLITE, tmp_path)
    workers = WorkerProcesses(settings, 1)
    running = asyncio.create_task(workers.keep_running())
    await until_up(settings)
    assert settings.log_path(1).read_text().startswith("redis://x")
    workers.kill()
    await asyncio.wait_for(running, 20)


def test_the_command_is_plain_celery(tmp_path: Path) -> None:
    settings = WorkerSettings("r1", ["conversations", "ns.hr"], 100, {}, tmp_path)
    command = " ".join(settings.command(2)[1:])
    assert "-A workers.app worker -Q conversations,ns.hr -c 100 -n r1-2@%h" in command
