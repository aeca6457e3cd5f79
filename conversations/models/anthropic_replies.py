"""Reads a message of Anthropic's API: everything a server may get wrong ends in a typed error (faults F20, F21)."""

from collections.abc import Callable, Container
from typing import Any

import orjson

from conversations.errors import MalformedReply
from conversations.messages import JSONObject, Message, assistant
from conversations.models.model import ModelReply
from conversations.models.replies import MAX_TOKEN_COUNT
from conversations.wire.anthropic import message_of

_FINISH_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
    "pause_turn": "pause_turn",
}
_MAY_BE_EMPTY = frozenset({"refusal", "pause_turn"})


def reply_of(
    answer: JSONObject,
    *,
    model: str,
    make_call_id: Callable[[], str],
    taken_ids: Container[str] = (),
    keep_reasoning: bool = True,
    answer_tool: str | None = None,
) -> ModelReply:
    """The reply inside an answer; with `answer_tool` the input of that tool, as text."""
    finish_reason = _finish_reason(answer.get("stop_reason"))
    try:
        message = message_of(
            answer.get("content"),
            make_call_id=make_call_id,
            taken_ids=taken_ids,
            keep_reasoning=keep_reasoning,
            may_be_empty=finish_reason in _MAY_BE_EMPTY,
        )
    except MalformedReply as error:
        ended = f"; it ended for {finish_reason!r}" if finish_reason == "length" else ""
        raise MalformedReply(f"{error.message}{ended}") from None
    if answer_tool is not None and (given := _given_to(answer_tool, answer["content"])) is not None:
        message, finish_reason = assistant(given), "stop"
    elif finish_reason in {"stop", "tool_calls"}:  # the message itself knows
        finish_reason = "tool_calls" if "tool_calls" in message else "stop"
    said_model = answer.get("model")
    input_tokens, output_tokens = _usage(answer.get("usage"))
    return ModelReply(
        message=_with_refusal(message, finish_reason),
        finish_reason=finish_reason,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        model=said_model if isinstance(said_model, str) and said_model else model,
    )


def _finish_reason(raw: Any) -> str:
    if raw is None:
        return "stop"
    known = _FINISH_REASONS.get(raw) if isinstance(raw, str) else None
    if known is None:
        raise MalformedReply(f"the reply ended for an unknown reason: {str(raw)[:80]!r}")
    return known


def _given_to(tool: str, content: list[JSONObject]) -> str | None:
    """The input of a tool as JSON text; None when it was not called."""
    for block in content:
        if block.get("type") == "tool_use" and block.get("name") == tool:
            given = block.get("input")
            return given if isinstance(given, str) else orjson.dumps(given).decode()  # text when it came as a stream
    return None


def _with_refusal(message: Message, finish_reason: str) -> Message:
    """A withheld reply may be empty, which no history may hold: say that it was withheld."""
    if finish_reason == "refusal" and not message.get("content") and not message.get("tool_calls"):
        return message | {"content": None, "refusal": "The model withheld its reply."}
    return message


def _usage(usage: Any) -> tuple[int, int]:
    """What was read, from the server's cache or not, and what was written."""
    if not isinstance(usage, dict):
        return 0, 0
    read = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    return sum(_tokens(usage.get(key)) for key in read), _tokens(usage.get("output_tokens"))


def _tokens(raw: Any) -> int:
    is_count = isinstance(raw, int) and not isinstance(raw, bool) and 0 <= raw <= MAX_TOKEN_COUNT
    return raw if is_count else 0
