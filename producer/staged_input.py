"""A run's whole input, checked and packed on this machine's disk: nothing is stored before all of it is good."""

import hashlib
import json
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import IO

from jobs.errors import RunConflict
from jobs.run import InputWriter, WrittenInput
from producer.errors import InputInvalid
from producer.intake import BadLine, CheckedJob, RouteOfJob, read_jobs
from results.errors import AlreadyStored
from results.file_store import FileStore
from results.keys import part_key
from results.manifest import InputPart
from results.store import Store

_STAGED_RUN_ID = "staged"
_MAX_RECORDED_BAD_LINES = 100_000
_UPLOADS_AT_ONCE = 8
STDIN = "-"
BAD_LINES = "input/bad-lines.jsonl"


class OnBadLine(StrEnum):
    """What happens when a job line cannot run."""

    ERROR = "error"
    SKIP = "skip"


@dataclass(slots=True)
class BadLines:
    """The lines that were left out."""

    count: int = 0
    recorded: list[BadLine] = field(default_factory=list)

    def add(self, line: BadLine) -> None:
        """Count the line; record it unless there are too many to keep."""
        self.count += 1
        if self.count <= _MAX_RECORDED_BAD_LINES:
            self.recorded.append(line)

    def to_jsonl(self) -> bytes:
        """The contents of `input/bad-lines.jsonl`."""
        return b"".join(json.dumps(line.to_json()).encode() + b"\n" for line in self.recorded)


@dataclass(frozen=True, slots=True)
class StagedInput:
    """Checked job lines as numbered parts in a temporary folder; `source_digest` is of the bytes as they were read."""

    store: FileStore
    written: WrittenInput
    bad_lines: BadLines
    source_digest: str

    def upload(self, store: Store, run_id: str) -> None:
        """Copy the parts into the run's folder; a part that is there with other bytes is a `RunConflict`."""
        # The first part alone: of two submissions with different jobs under one run id, one gets past it.
        self._upload_part(store, run_id, 0)
        with ThreadPoolExecutor(_UPLOADS_AT_ONCE) as pool:
            rest = range(1, len(self.written.parts))
            for _ in pool.map(lambda number: self._upload_part(store, run_id, number), rest):
                pass
        if self.bad_lines.count:
            store.put(f"{run_id}/{BAD_LINES}", self.bad_lines.to_jsonl())

    def written_as(self, run_id: str) -> WrittenInput:
        """The same input with the keys its parts have in the run's folder."""
        parts = tuple(
            InputPart(key=part_key(run_id, number), first_index=part.first_index, count=part.count, digest=part.digest)
            for number, part in enumerate(self.written.parts)
        )
        written = self.written
        return WrittenInput(parts, written.digest, written.routes, written.uniform_route, written.count)

    def _upload_part(self, store: Store, run_id: str, number: int) -> None:
        data = self.store.get(part_key(_STAGED_RUN_ID, number))
        key = part_key(run_id, number)
        try:
            store.put_new(key, data)
        except AlreadyStored:
            if store.get(key) != data:
                raise RunConflict(
                    f"{store.url}/{key} belongs to another submission of run {run_id} with other jobs; "
                    "give this run another --run-id"
                ) from None


@contextmanager
def staged_input(jobs: str, route_of_job: RouteOfJob, on_bad_line: OnBadLine) -> Iterator[StagedInput]:
    """Read and check the job lines of a file (or of stdin, for `-`); the parts live as long as the block."""
    with tempfile.TemporaryDirectory(prefix="parley-") as folder, open_jobs(jobs) as stream:
        store = FileStore(Path(folder))
        writer = InputWriter(store, _STAGED_RUN_ID)
        source = _DigestingReader(stream)
        bad_lines = BadLines()
        for line in read_jobs(source, name=shown_name(jobs), route_of_job=route_of_job):
            if isinstance(line, CheckedJob):
                writer.add(line.line, line.route)
            elif on_bad_line is OnBadLine.ERROR:
                raise InputInvalid(f"{line}; mend the line, or leave such lines out with --on-bad-line skip")
            else:
                bad_lines.add(line)
        if not writer.count:
            raise InputInvalid(_no_jobs(shown_name(jobs), bad_lines))
        yield StagedInput(store, writer.finish(), bad_lines, source.digest)


@contextmanager
def open_jobs(jobs: str) -> Iterator[IO[bytes]]:
    """The job lines' bytes."""
    if jobs == STDIN:
        yield sys.stdin.buffer
        return
    try:
        stream = Path(jobs).open("rb")  # noqa: SIM115 - closed below
    except OSError as error:
        raise InputInvalid(
            f"{jobs}: cannot be read: {error.strerror}; name a JSONL file with --jobs, or - for stdin"
        ) from None
    with stream:
        yield stream


def shown_name(jobs: str) -> str:
    """What error messages call the job lines' file."""
    return "<stdin>" if jobs == STDIN else jobs


class _DigestingReader:
    """Reads lines and digests the bytes as they pass."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._digest = hashlib.sha256()

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()

    def readline(self, limit: int) -> bytes:
        """Up to `limit` bytes of the next line."""
        raw = self._stream.readline(limit)
        self._digest.update(raw)
        return raw


def _no_jobs(name: str, bad_lines: BadLines) -> str:
    if bad_lines.count:
        return f"{name}: none of its {bad_lines.count} lines can run; the first: {bad_lines.recorded[0]}"
    return f'{name}: no jobs in it; each line is one job, such as {{"prompt": "How is the weather in Oslo?"}}'
