"""Two embedded runs of the same run do not meet, and a killed one blocks nobody (F41)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from producer.errors import RunLocked
from producer.run_lock import RunLock

ROOT = Path(__file__).parents[3]
HOLDER = (
    "import sys; from pathlib import Path; from producer.run_lock import RunLock\n"
    "with RunLock(Path(sys.argv[1]), 'r1'):\n"
    "    print('held', flush=True); sys.stdin.read()\n"
)


def test_the_second_says_who_holds_the_run(tmp_path: Path) -> None:
    with RunLock(tmp_path, "r1"), pytest.raises(RunLocked) as caught, RunLock(tmp_path, "r1"):
        pass
    assert f"process {os.getpid()}" in str(caught.value)
    assert "parley status" in str(caught.value)


def test_a_lock_is_free_again_when_its_block_ends(tmp_path: Path) -> None:
    for _ in range(2):
        with RunLock(tmp_path, "r1"):
            pass


def test_f41_a_lock_whose_holder_was_killed_by_kill_9_is_free(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(RunLocked, match=f"process {holder.pid}"), RunLock(tmp_path, "r1"):
            pass
        holder.kill()
        holder.wait(20)
    with RunLock(tmp_path, "r1"):
        pass
