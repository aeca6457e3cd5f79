"""Which calls of a history changed something on the backend, and so make a session's state again."""

from collections.abc import Callable, Iterable

from engines.calling.faults import PARTIAL_RESULT
from engines.history import EXTERNAL, INJECTED, HistoryEntry
from engines.tool import ErrorType, ToolCall

# Turned away before the server was asked. (A call that timed out was asked for, and may have done its work.)
_NEVER_SENT = frozenset({ErrorType.permission})
_NOT_THE_SERVERS = ("cached", "simulated", EXTERNAL)


def changes(history: Iterable[HistoryEntry], *, is_writer: Callable[[ToolCall], bool]) -> list[HistoryEntry]:
    """Return the entries of writers whose request reached the server, in order."""
    return [entry for entry in history if is_writer(entry.call) and _reached_the_server(entry)]


def _reached_the_server(entry: HistoryEntry) -> bool:
    metadata = entry.result.metadata
    return (
        entry.was_performed
        and entry.result.error_type not in _NEVER_SENT
        # Of the faults on purpose only this one asks the server, and then drops a part of what it said.
        and metadata.get(INJECTED) in {None, PARTIAL_RESULT}
        and not any(metadata.get(mark) for mark in _NOT_THE_SERVERS)
    )
