"""What enrichments keep in files."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import structlog

from engines.enrichments.cache import KeptEntries, cache_folder

SAVE = """
import sys
from pathlib import Path
from engines.enrichments.cache import KeptEntries
kept = KeptEntries(Path(sys.argv[1]), "test", "f")
print("ready", flush=True)
sys.stdin.readline()
for number in range(20):
    kept.add({f"{sys.argv[2]}-{number}": [number]})
"""


def test_d79_eight_processes_that_save_different_keys_lose_none(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    savers = [
        subprocess.Popen(
            [sys.executable, "-c", SAVE, str(tmp_path), str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )
        for number in range(8)
    ]
    for saver in savers:
        assert saver.stdout is not None
        assert saver.stdout.readline() == b"ready\n"
    for saver in savers:
        assert saver.stdin is not None
        saver.stdin.write(b"go\n")
        saver.stdin.flush()
    for saver in savers:
        saver.communicate(timeout=60)
        assert saver.returncode == 0
    kept = KeptEntries(tmp_path, "test", "f").load()
    assert kept == {f"{saver}-{number}": [number] for saver in range(8) for number in range(20)}
    assert sorted(path.name for path in (tmp_path / "enrichments" / "test").iterdir()) == ["f.json", "f.lock"]


@pytest.mark.parametrize("content", [b"{half", b"[1]", b"\xff\xfe", b""])
def test_d79_a_file_that_cannot_be_read_is_ignored_with_a_warning_and_then_replaced(
    tmp_path: Path, content: bytes
) -> None:
    kept = KeptEntries(tmp_path, "test", "f")
    kept.add({"a": 1})
    path = tmp_path / "enrichments" / "test" / "f.json"
    path.write_bytes(content)
    with structlog.testing.capture_logs() as logs:
        assert kept.load() == {}
    assert [entry["log_level"] for entry in logs] == ["warning"]
    kept.add({"b": 2})
    assert json.loads(path.read_bytes()) == {"b": 2}


def test_d79_a_folder_that_cannot_be_written_costs_a_warning_only(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    kept = KeptEntries(tmp_path / "file", "test", "f")
    with structlog.testing.capture_logs() as logs:
        kept.add({"a": 1})
    assert [entry["event"] for entry in logs] == ["an enrichment could not be kept"]


def test_without_a_folder_nothing_is_kept() -> None:
    kept = KeptEntries(None, "test", "f")
    kept.add({"a": 1})
    assert kept.load() == {}


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"PARLEY_CACHE_DIR": "/p", "XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/p"),
        ({"XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/x/parley"),
        ({"HOME": "/h"}, "/h/.cache/parley"),
        ({}, None),
    ],
)
def test_d79_the_environment_says_where_the_cache_lies(environment: dict[str, str], folder: str | None) -> None:
    assert cache_folder(environment) == (None if folder is None else Path(folder))
