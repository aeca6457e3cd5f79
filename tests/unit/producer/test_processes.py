"""Children can be found again, and none outlives its parent."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from producer.processes import ProcessIdentity, last_lines, signal_group, tethered

SLEEPER = [sys.executable, "-c", "import os, time; print(os.getpid(), flush=True); time.sleep(600)"]
AS_ON = (
    "import runpy, sys; sys.platform, script = sys.argv.pop(1), sys.argv.pop(1); "
    "sys.argv.insert(0, script); del sys.argv[1]; runpy.run_path(script, run_name='__main__')"
)


def test_an_identity_is_alive_until_its_process_ends() -> None:
    with subprocess.Popen(SLEEPER, start_new_session=True) as process:
        identity = ProcessIdentity.of(process.pid)
        assert identity is not None
        assert identity.is_alive
        identity.kill_group()
        process.wait(20)
        assert not identity.is_alive


def test_another_process_with_the_same_id_is_not_killed() -> None:
    with subprocess.Popen(SLEEPER, start_new_session=True) as process:
        stranger = ProcessIdentity(process.pid, "0")
        assert not stranger.is_alive
        stranger.kill_group()
        process.terminate()
        assert process.wait(20) == -signal.SIGTERM


def test_nobody_has_the_id_of_a_process_that_ended() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait(20)
    assert ProcessIdentity.of(process.pid) is None
    signal_group(process.pid, signal.SIGKILL)


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_f41_a_tethered_child_dies_with_a_parent_that_is_killed_by_kill_9(platform: str) -> None:
    """By the kernel where it can, by a watching process elsewhere."""
    script = (
        "import subprocess, signal, sys\n"
        "from producer.processes import tethered\n"
        f"command = tethered({SLEEPER!r}, when_parent_dies=signal.SIGKILL)\n"
        f"command[1:3] = ['-c', {AS_ON!r}, {platform!r}, command[2]]\n"
        "child = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)\n"
        "print(child.stdout.readline().decode().strip(), flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[3]
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        watched = os.pidfd_open(child)
        parent.kill()
        parent.wait(20)
    # The child is not ours to wait for; its pidfd becomes readable when it is gone.
    assert select.select([watched], [], [], 20)[0]
    os.close(watched)


def test_a_command_that_its_parent_did_not_live_to_see_is_not_started() -> None:
    command = tethered([sys.executable, "-c", "print('started')"], when_parent_dies=signal.SIGKILL)
    command[3] = "1"  # as if the parent had died meanwhile
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (1, "")


def test_the_end_of_a_log_is_shown_and_a_missing_log_is_empty(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(f"line {number}\n" for number in range(10_000)))
    assert last_lines(log, 2) == "line 9998\nline 9999"
    assert last_lines(tmp_path / "none", 2) == ""
