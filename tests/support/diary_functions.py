"""A diary of each conversation, kept in its session's scratch; it counts its runs, and the sessions that are open."""

from typing import Any

from engines.local.context import Context

OPEN: set[str] = set()
RUNS: list[str] = []


def open_diary(session_id: str, context: Context) -> None:
    OPEN.add(session_id)


def close_diary(session_id: str, context: Context) -> None:
    OPEN.discard(session_id)


def write(line: str, context: Context) -> dict[str, Any]:
    RUNS.append(line)
    lines = context.namespace.setdefault("lines", [])
    lines.append(line)
    return {"lines": list(lines)}
