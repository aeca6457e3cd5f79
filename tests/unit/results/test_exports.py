"""The export formats."""

from typing import Any

import orjson
import pytest

from results.exports.kinds import EXPORTS
from results.exports.openai import export_lines
from results.record import encode_record
from tests.unit.results.made_records import made_record


def stored(index: int, **changes: Any) -> dict[str, Any]:
    record: dict[str, Any] = orjson.loads(encode_record(made_record(index, **changes)))
    return record


def test_openai_lines_hold_messages_and_tools_of_the_ok_records() -> None:
    records = [stored(0), stored(1, status="failed"), stored(2)]
    lines = [orjson.loads(line) for line in export_lines(records)]
    assert lines == [{"messages": records[n]["messages"], "tools": records[n]["tools"]} for n in (0, 2)]


def test_openai_lines_of_other_statuses_come_when_asked_for() -> None:
    records = [stored(0), stored(1, status="failed")]
    assert len([*export_lines(records, statuses=("ok", "failed"))]) == 2


def test_openai_lines_leave_out_tools_where_there_are_none() -> None:
    assert [orjson.loads(line) for line in export_lines([stored(0, tools=())])] == [{"messages": stored(0)["messages"]}]


def test_jsonl_lines_are_the_records() -> None:
    records = [stored(0), stored(1, status="dead")]
    assert [orjson.loads(line) for line in EXPORTS["jsonl"](records)] == records


@pytest.mark.parametrize("kind", EXPORTS)
def test_every_export_gives_lines(kind: str) -> None:
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in EXPORTS[kind]([stored(0), stored(1)]))
