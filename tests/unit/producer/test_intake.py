"""Job lines are read one by one, and a bad one is an error with file, line, column and the way out."""

import io
import json
from collections.abc import Iterator
from typing import Any

import pytest

from engines.errors import ConfigurationInvalid
from jobs.job import JobLine
from jobs.routing import Route
from producer.intake import BadLine, CheckedJob, read_jobs


def route_by_tools(job: JobLine, index: int) -> Route:
    if job.tools and "hr::fire" in job.tools:
        raise ConfigurationInvalid(
            "no tool 'hr::fire'; did you mean 'hr::hire'?", at=("tools", job.tools.index("hr::fire"))
        )
    return ("hr",) if job.tools else ()


def read(text: str | bytes, **options: Any) -> list[CheckedJob | BadLine]:
    raw = text.encode() if isinstance(text, str) else text
    return list(read_jobs(io.BytesIO(raw), name="jobs.jsonl", route_of_job=route_by_tools, **options))


def problem(text: str | bytes, **options: Any) -> str:
    (line,) = read(text, **options)
    assert isinstance(line, BadLine)
    return str(line)


def test_a_good_line_is_kept_as_written_and_gets_its_route() -> None:
    (job,) = read('{"prompt": "Hi", "tools": ["hr::hire"], "metadata": {"a": 1}}')
    assert job == CheckedJob({"prompt": "Hi", "tools": ["hr::hire"], "metadata": {"a": 1}}, ("hr",))


def test_blank_lines_and_a_byte_order_mark_are_no_jobs_but_lines_are_counted() -> None:
    assert read(b'\xef\xbb\xbf{"prompt": "a"}\n\n   \n') == [CheckedJob({"prompt": "a"}, ())]
    assert problem(b"\n\n  \n[]\n").startswith("jobs.jsonl:4:1: ")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"prompt": "a", "tols": []}', "jobs.jsonl:1:17: unknown key 'tols'; did you mean 'tools'?"),
        ('{"prompt": "a", "zzz": 1}', "jobs.jsonl:1:17: unknown key 'zzz'; a job has: id, messages, prompt"),
        ('{"prompt": 7}', "jobs.jsonl:1:2: prompt: input should be a valid string"),
        ('{"id": ""}', "jobs.jsonl:1:2: id: string should have at least 1 character"),
        ('{"prompt": "a", "max_turns": 0}', "jobs.jsonl:1:17: max_turns: input should be greater"),
        ('{"prompt": "a", "tools": ["hr::*", "hr::fire"]}', "jobs.jsonl:1:36: no tool 'hr::fire'; did you mean"),
        ('{"prompt": "a",, }', "jobs.jsonl:1:16: not valid JSON"),
        ('["prompt"]', "jobs.jsonl:1:1: a job is a JSON object"),
        ('{"prompt": "a", "prompt": "b"}', "jobs.jsonl:1:17: the key 'prompt' stands twice"),
        (b'{"prompt": "\xff"}', "jobs.jsonl:1:13: not valid UTF-8"),
    ],
)
def test_decision_11_a_bad_line_is_an_error_with_place_cause_and_way_out(line: str | bytes, said: str) -> None:
    assert problem(line).startswith(said)


def test_an_id_that_stands_twice_names_both_lines() -> None:
    _, second = read('{"id": "x", "prompt": "a"}\n{"prompt": "b", "id": "x"}\n')
    assert str(second) == "jobs.jsonl:2:17: id: 'x' stands in line 1 already; ids must be unique"


def test_jobs_without_ids_never_clash() -> None:
    assert len(read('{"prompt": "a"}\n' * 5)) == 5


def test_f33_a_line_that_is_too_long_is_refused_and_the_next_one_read() -> None:
    long = json.dumps({"prompt": "x" * 5000})
    lines = read(f'{long}\n{{"prompt": "b"}}\n', max_line_bytes=1000)
    assert str(lines[0]).startswith("jobs.jsonl:1:1: the line is longer than 1,000 bytes")
    assert lines[1] == CheckedJob({"prompt": "b"}, ())


def test_a_line_of_exactly_the_limit_is_read() -> None:
    line = '{"prompt": "b"}'
    assert read(f"{line}\n{line}", max_line_bytes=len(line)) == [CheckedJob({"prompt": "b"}, ())] * 2


def test_f33_of_a_line_that_is_too_long_no_more_than_the_limit_is_held() -> None:
    class Endless(io.RawIOBase):
        """A gigabyte without a line break, of which every read is noted."""

        largest, left = 0, 1 << 30

        def readline(self, limit: int | None = -1, /) -> bytes:
            assert limit is not None
            size = min(limit, self.left)
            assert size <= 1 << 20
            Endless.largest = max(self.largest, size)
            self.left -= size
            return b"x" * size

    lines = read_jobs(Endless(), name="-", route_of_job=route_by_tools, max_line_bytes=1000)
    assert "longer than" in str(next(lines))


def test_lines_are_checked_as_they_are_asked_for() -> None:
    def endless() -> Iterator[bytes]:
        while True:
            yield b'{"prompt": "a"}\n'

    class Stream(io.RawIOBase):
        source = endless()

        def readline(self, _limit: int | None = -1, /) -> bytes:
            return next(self.source)

    jobs = read_jobs(Stream(), name="-", route_of_job=route_by_tools)
    assert [next(jobs) for _ in range(3)] == [CheckedJob({"prompt": "a"}, ())] * 3
