"""How much a conversation may do, and which calls of a turn are over it (rules U10, A12, S6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one conversation; None means none.

    `max_turns` counts model calls over the conversation's whole life (rule S10), `max_tool_calls` the calls of one
    assistant message. With `on_max_turns="answer"` the last model call goes without tools, to end in a text (rule U20).
    """

    max_turns: int = 20
    max_tool_calls: int = 10
    on_max_turns: Literal["error", "answer"] = "error"
    max_total_tool_calls: int | None = None
    max_total_tokens: int | None = None
    max_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Surplus:
    """Calls of a turn that are not run, and what the model is told about them."""

    call_ids: frozenset[str]
    message: str


def surplus(call_ids: Sequence[str], limits: Limits, calls_before: int) -> Surplus:
    """The calls of a message beyond the first n; exactly n are all run. `calls_before` it the conversation made."""
    allowed, reason = limits.max_tool_calls, f"a turn may make at most {limits.max_tool_calls} tool calls"
    if limits.max_total_tool_calls is not None and limits.max_total_tool_calls - calls_before < allowed:
        allowed = max(0, limits.max_total_tool_calls - calls_before)
        reason = f"the conversation may make at most {limits.max_total_tool_calls} tool calls"
    return Surplus(
        frozenset(call_ids[allowed:]),
        f"Not run: this turn made {len(call_ids)} tool calls, and {reason}. Only the first {allowed} were run.",
    )
