"""The shop's own tools, plain Python: they run in the worker, before a conversation waits for anybody."""

from typing import Any

from engines.local.context import Context

_GOODS = ("kettle", "lamp", "umbrella", "teapot")


def find_order(number: str) -> dict[str, Any]:
    """Find an order; whatever its number, there is one."""
    value = sum(number.encode())
    return {"number": number, "goods": _GOODS[value % len(_GOODS)], "euros": 10 + value % 90}


def note_case(text: str, context: Context) -> dict[str, int]:
    """Note something; the notes survive a pause, on whichever worker the conversation goes on."""
    notes = context.namespace.setdefault("notes", [])
    notes.append(text)
    return {"notes": len(notes)}
