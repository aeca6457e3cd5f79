"""Faults on purpose, for data in which tools fail: the same job draws the same faults on any worker (rules D32-D36)."""

import random
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field

from engines.chance import derive_seed
from engines.tool import ErrorType, ToolCall, ToolResult

UNPARSEABLE_RESULT = "<garbled: simulated unparseable result>"
EMPTY_RESULT = "empty_result"


class ErrorCategory(BaseModel):
    """One way to fail and how often; an unknown type fails with the message, as a known one does (rule D33)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: str = Field(min_length=1)
    probability: float = Field(ge=0, le=1)
    message: str = "Tool execution failed"


_ERROR_TYPES = {"network_error": ErrorType.network, **{error_type.value: error_type for error_type in ErrorType}}


def drawn_fault(categories: Sequence[ErrorCategory], *, seed: int, call_number: int) -> ErrorCategory | None:
    """Sample every category by itself; of several that fire, one is chosen, all alike (rule D32)."""
    if not categories:
        return None
    dice = random.Random(derive_seed("fault", seed, call_number))
    fired = [category for category in categories if dice.random() < category.probability]
    return dice.choice(fired) if fired else None


def faulty_result(category: ErrorCategory, call: ToolCall) -> ToolResult:
    """Return what the model is told, marked `metadata.injected` so that users of the data can filter (rule D36)."""
    if category.type == ErrorType.unparseable_result:
        metadata = {"injected": category.type}
        return ToolResult(call.call_id, call.qualified_name, result=UNPARSEABLE_RESULT, metadata=metadata)
    if category.type == EMPTY_RESULT:  # a search that finds nothing is an answer (rule D34)
        return ToolResult(call.call_id, call.qualified_name, result=[], metadata={"injected": category.type})
    error_type = _ERROR_TYPES.get(category.type, ErrorType.execution)
    return ToolResult.failed(call, error_type, category.message, injected=category.type)
