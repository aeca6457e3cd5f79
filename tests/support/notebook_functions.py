"""Tools of tests that keep something of their conversation: pages of a notebook, and how often they really ran."""

from typing import Any

from engines.local.context import Context

INLINE = True
RUNS: list[str] = []


def note(text: str, context: Context, pages: int = 1) -> dict[str, Any]:
    """Write; a text that begins with "fail" fails."""
    RUNS.append(text)
    if text.startswith("fail"):
        raise RuntimeError(text)
    notes = context.namespace.setdefault("notes", [])
    notes.extend([text] * pages)
    return {"notes": len(notes), "luck": context.seed}


def read(context: Context) -> list[str]:
    """Read all."""
    return list(context.namespace.get("notes", []))


def plain(text: str) -> str:
    """Know of no conversation."""
    RUNS.append(text)
    return text


def begin(_session_id: str, context: Context) -> None:
    """Write the first page."""
    context.namespace["notes"] = ["cover"]
