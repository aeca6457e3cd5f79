"""kill -9 in the middle of writing: what counted as written is there, and nothing is damaged."""

import subprocess
import sys
from pathlib import Path

import pytest

from results.reading import visible_entries, visible_records
from results.store import open_store

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("kind", ["file", "s3"])
def test_f4_f5_a_killed_writer_loses_no_record_it_called_written(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    url = str(tmp_path / "r") if kind == "file" else request.getfixturevalue("bucket_url")
    written: set[int] = set()
    for attempt in range(1, 4):
        command = [sys.executable, "-m", "tests.unit.results.killed_writer", url, str(attempt)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, text=True) as process:
            assert process.stdout is not None
            for line, _ in zip(process.stdout, range(200 * attempt), strict=False):
                written.add(int(line))
            process.kill()
            written.update(int(line) for line in process.stdout.read().split("\n")[:-1])
    store = open_store(url)
    seen = [entry.index for entry in visible_entries(store, "run")]
    assert len(seen) == len(set(seen))
    assert len(written) > 500
    assert written <= set(seen)
    assert sorted(record["index"] for record in visible_records(store, "run")) == sorted(seen)
