"""Faults on purpose, for data in which tools fail: the same job draws the same faults on any worker (rules D32-D36)."""

import random
from collections.abc import Callable, Sequence
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from engines.chance import derive_seed
from engines.history import INJECTED, History
from engines.plain import JSONObject, copied
from engines.tool import ErrorType, ToolCall, ToolResult

UNPARSEABLE_RESULT = "<garbled: simulated unparseable result>"
EMPTY_RESULT = "empty_result"
RATE_LIMITED = "rate_limited"
PARTIAL_RESULT = "partial_result"
STALE_RESULT = "stale_result"
OUTAGE = "outage"
NEEDING_THE_TOOL = frozenset({PARTIAL_RESULT, STALE_RESULT})
"""Faults that are made of what the tool says, or said before."""

_OWN_KEYS = {"calls": OUTAGE, "retry_after_seconds": RATE_LIMITED}
_MESSAGES = {RATE_LIMITED: "Rate limit exceeded", OUTAGE: "Service unavailable"}
_ERROR_TYPES = {error_type.value: error_type for error_type in ErrorType} | {
    "network_error": ErrorType.network,
    RATE_LIMITED: ErrorType.network,
    OUTAGE: ErrorType.network,
}


class ErrorCategory(BaseModel):
    """One way to fail and how often; an unknown type fails with the message, as a known one does (rule D33).

    `tools` are the names it is for (None: all the engine's); an `outage` lasts for `calls` calls of the conversation.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: str = Field(min_length=1)
    probability: float = Field(ge=0, le=1)
    message: str = "Tool execution failed"
    tools: tuple[str, ...] | None = Field(default=None, min_length=1)
    calls: int = Field(default=3, ge=1, le=100)
    retry_after_seconds: float | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _keys_are_of_the_type(self) -> Self:
        for key, owner in _OWN_KEYS.items():
            if key in self.model_fields_set and self.type != owner:
                raise ValueError(f"{key} belongs to type {owner!r}, not {self.type!r}")
        return self

    def covers(self, qualified_name: str) -> bool:
        """Whether calls of this tool may fail so."""
        return self.tools is None or qualified_name in self.tools

    @property
    def told(self) -> str:
        """What the model reads: the message that the recipe gives, else the type's own, else any failure's."""
        message = self.message
        if "message" not in self.model_fields_set:
            message = _MESSAGES.get(self.type, message)
        if self.retry_after_seconds is not None:
            message += f"; retry after {self.retry_after_seconds:g} seconds"
        return message


def drawn_fault(
    categories: Sequence[ErrorCategory], *, seed: int, call_number: int, tool: str = ""
) -> ErrorCategory | None:
    """Sample every category by itself; of several that fire, one is chosen, all alike (rule D32).

    An outage that is under way comes before all: a service that is down does nothing else.
    """
    if not categories:
        return None
    for position, category in enumerate(categories):
        if category.type == OUTAGE and category.covers(tool) and _is_down(category, position, seed, call_number):
            return category
    dice = random.Random(derive_seed("fault", seed, call_number))
    # A draw for each, whether the tool is its or not: which tools one category is for must not move the others.
    drawn = [category for category in categories if dice.random() < category.probability]
    fired = [category for category in drawn if category.type != OUTAGE and category.covers(tool)]
    return dice.choice(fired) if fired else None


def faulty_result(category: ErrorCategory, call: ToolCall) -> ToolResult:
    """Return what the model is told, marked `metadata.injected` so that users of the data can filter (rule D36)."""
    if category.type == ErrorType.unparseable_result:
        return _given(UNPARSEABLE_RESULT, category.type, call)
    if category.type == EMPTY_RESULT:  # a search that finds nothing is an answer (rule D34)
        return _given([], category.type, call)
    error_type = _ERROR_TYPES.get(category.type, ErrorType.execution)
    return ToolResult.failed(call, error_type, category.told, **{INJECTED: category.type})


def stale_result(call: ToolCall, history: History, filled: Callable[[JSONObject], JSONObject]) -> ToolResult | None:
    """Return what the same call came to first, None when it is the first: a cache that is told of no change.

    `filled` puts the schema's defaults into arguments, which a restored history lacks.
    """
    for entry in history:
        is_same = entry.call.qualified_name == call.qualified_name and not entry.result.is_error
        if is_same and INJECTED not in entry.result.metadata and filled(entry.call.arguments) == call.arguments:
            return _given(copied(entry.result.result), STALE_RESULT, call)
    return None


def spoilt(category: ErrorCategory, result: ToolResult) -> ToolResult:
    """Return what the fault leaves of the tool's own answer; what is not cut short is not marked either."""
    if category.type != PARTIAL_RESULT:
        return result
    part = _part_of(result.result)
    if part == result.result:
        return result
    metadata = {**result.metadata, INJECTED: category.type}
    return ToolResult(result.call_id, result.name, result=part, metadata=metadata, debug=result.debug)


def _is_down(category: ErrorCategory, position: int, seed: int, call_number: int) -> bool:
    """Whether the outage began with this call or with one of those just before it; nothing has to be remembered."""
    first = max(0, call_number - category.calls + 1)
    threshold = category.probability * 2**53
    return any(derive_seed("outage", seed, position, number) < threshold for number in range(first, call_number + 1))


def _given(result: Any, injected: str, call: ToolCall) -> ToolResult:
    return ToolResult(call.call_id, call.qualified_name, result=result, metadata={INJECTED: injected})


def _part_of(value: Any) -> Any:
    """Return the first half of a list or a text; of an object what `_part_of_object` leaves; the rest as it is."""
    match value:
        case [dict() as only]:
            return [_part_of_object(only)]
        case str() | list():
            return value[: (len(value) + 1) // 2]
        case dict():
            return _part_of_object(value)
        case _:
            return value


def _part_of_object(value: JSONObject) -> JSONObject:
    """Return it with its lists halved, else its text, else with half of its keys."""
    shorter = {key: item[: (len(item) + 1) // 2] if isinstance(item, list) else item for key, item in value.items()}
    if shorter != value:
        return shorter
    if isinstance(text := value.get("text"), str):
        return {**value, "text": text[: (len(text) + 1) // 2]}
    return dict(list(value.items())[: (len(value) + 1) // 2])
