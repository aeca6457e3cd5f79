"""Reads the body of a chat completion: everything a server may get wrong ends in a typed error (faults F20, F21)."""

import math
from collections.abc import Callable, Container
from functools import partial
from typing import Any

import orjson

from conversations.errors import MalformedReply
from conversations.messages import JSONObject
from conversations.models.model import Alternative, ModelReply
from conversations.wire.openai import normalise_assistant

MAX_TOKEN_COUNT = 1_000_000_000
MAX_CHOICES = 128
# What servers say where OpenAI says one of four words.
_FINISH_REASONS = {
    "stop": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "stop_sequence": "stop",
    "end_turn": "stop",
    "tool_calls": "tool_calls",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
    "refusal": "content_filter",
}


def read_completion(data: Any) -> JSONObject:
    """The body as a JSON object; MalformedReply otherwise."""
    try:
        completion = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise MalformedReply(f"the reply is not JSON: {error.msg}") from None
    if not isinstance(completion, dict):
        raise MalformedReply("the reply is JSON, but no object")
    return completion


def reply_of(
    completion: JSONObject,
    *,
    model: str,
    make_call_id: Callable[[], str],
    taken_ids: Container[str] = (),
    keep_reasoning: bool = True,
    wants_alternatives: bool = False,
) -> ModelReply:
    """The reply inside a completion; among several choices the usable ones count."""
    choices = completion.get("choices")
    if not isinstance(choices, list) or not choices:
        raise MalformedReply("the reply holds no choices")
    read = partial(_read_choice, make_call_id=make_call_id, taken_ids=taken_ids, keep_reasoning=keep_reasoning)
    usable: list[tuple[Alternative, str]] = []
    problem: MalformedReply | None = None
    for choice in choices[: MAX_CHOICES if wants_alternatives else 1]:
        try:
            usable.append(read(choice))
        except MalformedReply as error:
            problem = problem or error
    if not usable:
        raise problem or MalformedReply("the reply holds no choices")
    chosen, finish_reason = usable[0]
    input_tokens, output_tokens = _usage(completion.get("usage"))
    said_model = completion.get("model")
    return ModelReply(
        message=chosen.message,
        finish_reason=finish_reason,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        model=said_model if isinstance(said_model, str) and said_model else model,
        alternatives=tuple(alternative for alternative, _ in usable) if wants_alternatives else (),
    )


def _read_choice(
    choice: Any, *, make_call_id: Callable[[], str], taken_ids: Container[str], keep_reasoning: bool
) -> tuple[Alternative, str]:
    if not isinstance(choice, dict):
        raise MalformedReply("a choice of the reply is no object")
    finish_reason = _finish_reason(choice.get("finish_reason"))
    try:
        message = normalise_assistant(
            choice.get("message"), make_call_id, taken_ids=taken_ids, keep_reasoning=keep_reasoning
        )
    except MalformedReply as error:
        ended = f"; it ended for {finish_reason!r}" if finish_reason in {"length", "content_filter"} else ""
        raise MalformedReply(f"{error.message}{ended}") from None
    if finish_reason in {"", "stop", "tool_calls"}:  # servers mix these up; the message itself knows
        finish_reason = "tool_calls" if "tool_calls" in message else "stop"
    return Alternative(message, _summed_logprob(choice.get("logprobs")), finish_reason), finish_reason


def _finish_reason(raw: Any) -> str:
    if raw is None:
        return ""
    known = _FINISH_REASONS.get(raw) if isinstance(raw, str) else None
    if known is None:
        raise MalformedReply(f"the reply ended for an unknown reason: {str(raw)[:80]!r}")
    return known


def _summed_logprob(logprobs: Any) -> float | None:
    tokens = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(tokens, list):
        return None
    values = [token.get("logprob") if isinstance(token, dict) else None for token in tokens]
    numbers = [float(value) for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) != len(values) or not all(map(math.isfinite, numbers)):
        return None
    return math.fsum(numbers)


def _usage(usage: Any) -> tuple[int, int]:
    if not isinstance(usage, dict):
        return 0, 0
    return _tokens(usage.get("prompt_tokens")), _tokens(usage.get("completion_tokens"))


def _tokens(raw: Any) -> int:
    """A token count; nonsense counts nothing rather than losing a good reply."""
    is_count = isinstance(raw, int) and not isinstance(raw, bool) and 0 <= raw <= MAX_TOKEN_COUNT
    return raw if is_count else 0
