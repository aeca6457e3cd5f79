"""Reads the user's job lines one by one and checks each: bounded memory, errors with file, line and column."""

import difflib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from pydantic import ValidationError

from engines.errors import ConfigurationInvalid
from jobs.job import JobLine, JSONObject
from jobs.routing import Route
from producer.duplicate_ids import SeenIds
from producer.errors import InputInvalid
from producer.strict_json import StrictJSONError, offset_of, parse_strict

MAX_LINE_BYTES = 4 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Lines(Protocol):
    """Where lines come from: an open file, or what stands before one."""

    def readline(self, limit: int, /) -> bytes:
        """Up to `limit` bytes of the next line; none at the end."""
        ...


class RouteOfJob(Protocol):
    """Checks a job against the recipe and says its route; the index may decide which tools are drawn for it."""

    def __call__(self, job: JobLine, index: int) -> Route:
        """`ConfigurationInvalid`, its `at` a path inside the line, for a job that cannot run."""
        ...


@dataclass(frozen=True, slots=True)
class CheckedJob:
    """A job line that can run, as the user wrote it, with the stateful namespaces it touches."""

    line: JSONObject
    route: Route


@dataclass(frozen=True, slots=True)
class BadLine:
    """A job line that cannot run; line and column count from 1."""

    file: str
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.message}"

    def to_json(self) -> JSONObject:
        """What `--on-bad-line skip` records."""
        return {"file": self.file, "line": self.line, "column": self.column, "message": self.message}


def read_jobs(
    stream: Lines, *, name: str, route_of_job: RouteOfJob, max_line_bytes: int = MAX_LINE_BYTES
) -> Iterator[CheckedJob | BadLine]:
    """Every line of `stream` that is not blank, checked; `name` is what error messages call the file."""
    index = 0
    with SeenIds() as seen_ids:
        for number, raw in _lines(stream, max_line_bytes):
            try:
                checked = _checked(raw, number, partial(route_of_job, index=index), seen_ids, max_line_bytes)
            except _LineProblem as problem:
                yield BadLine(name, number, problem.column, problem.message)
            else:
                index += 1
                yield checked


def only_good(lines: Iterator[CheckedJob | BadLine]) -> Iterator[CheckedJob]:
    """The jobs; the first bad line is an `InputInvalid`."""
    for line in lines:
        if isinstance(line, BadLine):
            raise InputInvalid(f"{line}; mend the line, or leave such lines out with --on-bad-line skip")
        yield line


class _LineProblem(Exception):
    def __init__(self, message: str, column: int = 1) -> None:
        super().__init__(message)
        self.message, self.column = message, column


def _lines(stream: Lines, max_line_bytes: int) -> Iterator[tuple[int, bytes]]:
    """Numbered lines that are not blank; of a longer one only the first `max_line_bytes` + 1 bytes."""
    number = 0
    while raw := stream.readline(max_line_bytes + 1):
        number += 1
        if number == 1:
            raw = raw.removeprefix(_BYTE_ORDER_MARK)
        rest = raw
        while len(raw) > max_line_bytes and not rest.endswith(b"\n") and (rest := stream.readline(1 << 20)):
            pass  # The rest of a line that is too long is read away, never kept.
        if raw.strip():
            yield number, raw


def _checked(
    raw: bytes, number: int, route_of_job: Callable[[JobLine], Route], seen_ids: SeenIds, max_line_bytes: int
) -> CheckedJob:
    if len(raw.rstrip(b"\r\n")) > max_line_bytes:
        raise _LineProblem(f"the line is longer than {max_line_bytes:,} bytes; a job must be smaller")
    text = _decoded(raw)
    try:
        data = parse_strict(text)
    except StrictJSONError as error:
        raise _LineProblem(error.message, error.offset + 1) from None
    if not isinstance(data, dict):
        raise _LineProblem('a job is a JSON object, such as {"prompt": "…"}')
    try:
        job = JobLine.model_validate(data)
        route = route_of_job(job)
    except ValidationError as error:
        raise _problem_of(error, text) from None
    except ConfigurationInvalid as error:
        raise _LineProblem(error.message, offset_of(text, error.at) + 1) from None
    if job.id is not None and (earlier := seen_ids.first_line_of(job.id, number)) is not None:
        raise _LineProblem(
            f"id: {job.id!r} stands in line {earlier} already; ids must be unique", offset_of(text, ("id",)) + 1
        )
    return CheckedJob(data, route)


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode().rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise _LineProblem("not valid UTF-8; save the file as UTF-8", error.start + 1) from None


def _problem_of(error: ValidationError, text: str) -> _LineProblem:
    first = error.errors(include_url=False, include_input=False)[0]
    path = tuple(first["loc"])
    where = ".".join(str(step) for step in path)
    if first["type"] == "extra_forbidden":
        message = f"unknown key {where!r}{_nearest(str(path[-1]))}"
    else:
        said = first["msg"].removeprefix("Value error, ")
        message = f"{where}: {said[0].lower()}{said[1:]}" if where else said
    return _LineProblem(message, offset_of(text, path) + 1)


def _nearest(key: str) -> str:
    known = list(JobLine.model_fields)
    close = difflib.get_close_matches(key, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; a job has: {', '.join(known)}"
