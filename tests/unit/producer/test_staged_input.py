"""A run's input is packed as numbered parts, and two submissions under one name never mix (F36)."""

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jobs.errors import RunConflict
from jobs.job import JobLine
from jobs.routing import Route
from jobs.run import read_part
from producer.errors import InputInvalid
from producer.staged_input import BAD_LINES, OnBadLine, StagedInput, staged_input
from results.file_store import FileStore


def no_route(job: JobLine, index: int) -> Route:
    return ()


def job_lines(count: int, prefix: str = "prompt") -> str:
    return "".join(json.dumps({"prompt": f"{prefix} {number}"}) + "\n" for number in range(count))


@contextmanager
def staged(folder: Path, text: str, on_bad_line: OnBadLine = OnBadLine.ERROR) -> Iterator[StagedInput]:
    path = folder / "jobs.jsonl"
    path.write_text(text)
    with staged_input(str(path), no_route, on_bad_line) as result:
        yield result


def test_parts_arrive_in_the_run_s_folder_as_they_were_staged(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "results")
    with staged(tmp_path, job_lines(2500)) as result:
        result.upload(store, "r1")
        written = result.written_as("r1")
    assert [(part.key, part.first_index, part.count) for part in written.parts] == [
        ("r1/input/part-000000.jsonl.zst", 0, 1000),
        ("r1/input/part-000001.jsonl.zst", 1000, 1000),
        ("r1/input/part-000002.jsonl.zst", 2000, 500),
    ]
    lines = [json.loads(line) for part in written.parts for line in read_part(store, part)]
    assert [line["prompt"] for line in lines] == [f"prompt {number}" for number in range(2500)]
    assert written.count == 2500


def test_the_staging_folder_is_gone_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    with pytest.raises(InputInvalid), staged(tmp_path, job_lines(1500) + "nonsense\n"):
        pass
    assert list((tmp_path / "temporary").iterdir()) == []


def test_the_same_input_may_be_written_again(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "results")
    for _ in range(2):
        with staged(tmp_path, job_lines(10)) as result:
            result.upload(store, "r1")


def test_f36_another_input_under_the_same_name_is_a_conflict_and_changes_nothing(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "results")
    with staged(tmp_path, job_lines(10)) as result:
        result.upload(store, "r1")
    before = store.get("r1/input/part-000000.jsonl.zst")
    with staged(tmp_path, job_lines(10, "other")) as result, pytest.raises(RunConflict, match="--run-id"):
        result.upload(store, "r1")
    assert store.get("r1/input/part-000000.jsonl.zst") == before


class OneAtATime(FileStore):
    """A store that knows for certain whether a key is taken, as S3 does."""

    lock = threading.Lock()

    def put_new(self, key: str, data: bytes) -> None:
        with self.lock:
            super().put_new(key, data)


def test_f36_of_two_that_start_at_once_one_writes_all_parts_and_the_other_none(tmp_path: Path) -> None:
    store = OneAtATime(tmp_path / "results")
    outcomes: list[str] = []
    begin = threading.Barrier(2)

    def submit(prefix: str) -> None:
        folder = tmp_path / prefix
        folder.mkdir()
        with staged(folder, job_lines(3000, prefix)) as result:
            begin.wait(20)
            try:
                result.upload(store, "r1")
                outcomes.append(prefix)
            except RunConflict:
                outcomes.append("conflict")

    threads = [threading.Thread(target=submit, args=(prefix,)) for prefix in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert min(outcomes) == "conflict"
    (winner,) = set(outcomes) - {"conflict"}
    with staged(tmp_path, job_lines(3000, winner)) as result:
        lines = [line for part in result.written_as("r1").parts for line in read_part(store, part)]
    assert len(lines) == 3000


def test_the_digest_is_of_the_bytes_that_were_read(tmp_path: Path) -> None:
    with staged(tmp_path, job_lines(3)) as first, staged(tmp_path, job_lines(3)) as second:
        assert first.source_digest == second.source_digest
    with staged(tmp_path, job_lines(4)) as other:
        assert other.source_digest != first.source_digest


def test_a_pipe_is_read_like_a_file(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, job_lines(3).encode())
    os.close(writing)
    with staged_input(f"/dev/fd/{reading}", no_route, OnBadLine.ERROR) as result:
        assert result.written.count == 3
    os.close(reading)


def test_bad_lines_are_counted_and_recorded_beside_the_parts(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "results")
    with staged(tmp_path, '{"prompt": "a"}\n{"promt": 1}\n', OnBadLine.SKIP) as result:
        result.upload(store, "r1")
        assert result.bad_lines.count == 1
    recorded = json.loads(store.get(f"r1/{BAD_LINES}"))
    assert (recorded["line"], recorded["column"]) == (2, 2)
    assert "did you mean 'prompt'?" in recorded["message"]


def test_an_input_without_a_single_job_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputInvalid, match="no jobs in it"), staged(tmp_path, "\n"):
        pass
    with pytest.raises(InputInvalid, match="none of its 2 lines"), staged(tmp_path, "3\n[]\n", OnBadLine.SKIP):
        pass
