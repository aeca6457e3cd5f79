"""Which calls of a history made a session's state on a server, and so make it again in a fresh session."""

from collections.abc import Collection, Iterable

from engines.calling.result_cache import CACHED
from engines.history import EXTERNAL, INJECTED, HistoryEntry
from engines.tool import ErrorType, ToolCall

# Turned away before the server was asked. (A call that timed out was asked for, and may have done its work.)
_NEVER_SENT = frozenset({ErrorType.permission})
_NOT_THE_SERVERS = (INJECTED, CACHED, EXTERNAL)


def replayable(history: Iterable[HistoryEntry], names: Collection[str]) -> list[ToolCall]:
    """Return the calls of these tools (qualified names) that reached the server, in order."""
    return [
        entry.call
        for entry in history
        if entry.call.qualified_name in names
        and entry.was_performed
        and entry.result.error_type not in _NEVER_SENT
        and not any(entry.result.metadata.get(mark) for mark in _NOT_THE_SERVERS)
    ]
