"""Results that are too long, cut to head and tail with a note between (rule S14)."""

from typing import Any

from engines.plain import JSONObject, text_of


def shortened(result: Any, max_chars: int) -> tuple[Any, JSONObject]:
    """Return (the result, {}) when its text has at most `max_chars`, else (head … tail as text, what was left out)."""
    text = text_of(result)
    if len(text) <= max_chars:
        return result, {}
    return cut(text, max_chars), {"truncated": True, "original_chars": len(text)}


def cut(text: str, max_chars: int) -> str:
    """Return a text of at most `max_chars`: its head, a note, its tail; only its head where the note has no room."""
    if len(text) <= max_chars:
        return text
    note = f"\n[… {len(text) - max_chars} or more characters left out …]\n"
    room = max_chars - len(note)
    if room <= 0:
        return text[:max_chars]
    head = (room + 1) // 2
    return text[:head] + note + text[len(text) - (room - head) :]
