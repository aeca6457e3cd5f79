"""A tool that takes control answers the user itself, so it must be called alone (rules U12-U14)."""

from collections.abc import Callable, Mapping, Sequence

from conversations.wire.openai import ParsedCall

TAKES_CONTROL = "takes_control"
"""The metadata key of a tool that ends the conversation with its result."""
TOOK_CONTROL = "took_control"
"""The metadata key of a result that did."""


def conflicts(calls: Sequence[ParsedCall], takes_control: Callable[[str], bool]) -> Mapping[str, str]:
    """What each call of the batch is told when one that takes control is not alone; empty when there is no conflict.

    `calls` are without duplicates: two equal calls are one, and that one is alone (rule U14). `takes_control` is asked
    with qualified names.
    """
    takers = {
        parsed.call_id: parsed.wire_name
        for parsed in calls
        if parsed.call is not None and takes_control(parsed.call.qualified_name)
    }
    if not takers or len(calls) == 1:
        return {}
    names = ", ".join(f"`{name}`" for name in dict.fromkeys(takers.values()))
    return {
        parsed.call_id: _told_taker(parsed.wire_name) if parsed.call_id in takers else _told_sibling(names)
        for parsed in calls
    }


def _told_taker(name: str) -> str:
    return (
        f"Not run: tool `{name}` answers the user directly, so it must be called on its own. None of the tools of this "
        f"batch were run. Call the other tools first, then `{name}` alone."
    )


def _told_sibling(names: str) -> str:
    return f"Not run: the following tool(s) must be called on their own: {names}."
