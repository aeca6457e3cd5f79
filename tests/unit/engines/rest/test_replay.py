"""Which calls make a session's state again."""

from typing import Any

import pytest

from engines.history import HistoryEntry
from engines.rest.replay import changes
from engines.tool import ErrorType, ToolCall, ToolResult


def entry(*, name: str = "add", **result: Any) -> HistoryEntry:
    return HistoryEntry(ToolCall(name, "w", {}), ToolResult(None, f"w::{name}", **result))


def are_replayed(*entries: HistoryEntry) -> list[HistoryEntry]:
    return changes(entries, is_writer=lambda call: call.name == "add")


def test_f3_writers_are_replayed_in_order_and_readers_are_not() -> None:
    first, reader, second = entry(result=1), entry(name="get", result=1), entry(result=2)
    assert are_replayed(first, reader, second) == [first, second]


@pytest.mark.parametrize("error_type", [ErrorType.execution, ErrorType.timeout, ErrorType.network])
def test_f3_what_may_have_done_its_work_is_replayed(error_type: ErrorType) -> None:
    assert len(are_replayed(entry(error="x", error_type=error_type))) == 1


@pytest.mark.parametrize(
    "result",
    [
        {"error": "x", "error_type": ErrorType.validation},
        {"error": "x", "error_type": ErrorType.permission},
        {"error": "x", "error_type": ErrorType.external},
        {"error": "x", "error_type": ErrorType.network, "metadata": {"injected": "network_error"}},
        {"result": 1, "metadata": {"injected": "stale_result"}},
        {"result": 1, "metadata": {"cached": True}},
        {"result": 1, "metadata": {"external": True}},
        {"result": 1, "metadata": {"simulated": True}},
    ],
)
def test_f3_what_never_reached_the_server_is_not_replayed(result: dict[str, Any]) -> None:
    assert are_replayed(entry(**result)) == []


def test_f3_an_answer_that_was_cut_short_on_purpose_was_the_servers() -> None:
    assert len(are_replayed(entry(result=1, metadata={"injected": "partial_result"}))) == 1
