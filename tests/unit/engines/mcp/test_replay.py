"""Which calls make a session's state again."""

from engines.history import HistoryEntry
from engines.mcp.replay import replayable
from engines.tool import ErrorType, ToolCall, ToolResult


def entry(name: str, error_type: ErrorType | None = None, **metadata: object) -> HistoryEntry:
    call = ToolCall(name, "w", {"n": name})
    result = ToolResult(None, call.qualified_name, error_type and "x", error_type and "x", error_type, metadata)
    return HistoryEntry(call, result)


def test_f3_calls_that_reached_the_server_are_replayed_in_order_and_others_are_not() -> None:
    history = [
        entry("a"),
        entry("b", ErrorType.execution),
        entry("a", ErrorType.timeout),
        entry("a", ErrorType.validation),
        entry("a", ErrorType.unknown_tool),
        entry("a", ErrorType.permission),
        entry("a", ErrorType.network, injected="network_error"),
        entry("a", cached=True),
        entry("a", external=True),
        entry("elsewhere"),
        entry("c"),
    ]
    replayed = replayable(history, {"w::a", "w::b", "w::c"})
    assert [call.name for call in replayed] == ["a", "b", "a", "c"]
