"""Tests of reading CPU time and memory of a process tree."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.process_tree import cpu_seconds, resident_bytes

BURNING = """
import subprocess, sys, time
def burn():
    while time.process_time() < 0.3:
        pass
if sys.argv[1:] == ["child"]:
    burn()
else:
    subprocess.run([sys.executable, sys.argv[0], "child"], check=True)
    print("burnt", flush=True)
    sys.stdin.read()
"""


def test_the_time_of_a_child_that_has_ended_counts(tmp_path: Path) -> None:
    script = tmp_path / "burning.py"
    script.write_text(BURNING)
    with subprocess.Popen([sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"burnt\n"
        assert cpu_seconds(process.pid) >= 0.29
        process.communicate()


def test_the_memory_of_a_process_is_what_the_kernel_says() -> None:
    waiting = [sys.executable, "-c", "print('up', flush=True); input()"]
    with subprocess.Popen(waiting, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
        said_kb = next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))
        assert resident_bytes(process.pid) == pytest.approx(said_kb * 1024, rel=0.1)
        process.communicate(b"\n")


def test_a_process_that_has_ended_is_named() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    with pytest.raises(ProcessLookupError, match=f"process {process.pid} has ended"):
        cpu_seconds(process.pid)
