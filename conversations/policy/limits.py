"""How much a conversation may do, and which calls of a turn are over it (rules U10, A12, S6)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class UserLimits:
    """How often a simulated user speaks; `opens`: also before the assistant does."""

    max_user_turns: int
    opens: bool = False

    def speaks_again(self, kept: Mapping[str, Any]) -> bool:
        """Whether it may say something more, by what the state keeps of it."""
        return not kept.get("is_done") and int(kept.get("turns", 0)) < self.max_user_turns


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one conversation; None means none.

    `max_turns` counts model calls over the conversation's whole life (rule S10), `max_tool_calls` the calls of one
    assistant message. With `on_max_turns="answer"` the last model call goes without tools, to end in a text (rule U20).
    With a `user` a final text is not the end before that user is done; `max_total_tokens` counts its tokens too.
    """

    max_turns: int = 20
    max_tool_calls: int = 10
    on_max_turns: Literal["error", "answer"] = "error"
    max_total_tool_calls: int | None = None
    max_total_tokens: int | None = None
    max_seconds: float | None = None
    user: UserLimits | None = None


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
