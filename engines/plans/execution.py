"""Carries a plan out: call by call, each with the results of those before it put in."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from engines.engine import ToolEngine
from engines.plans.references import UnresolvedReference, reference_id, resolved
from engines.tool import ToolCall, ToolResult


class PlanStopped(UnresolvedReference):
    """A call's arguments could not be completed; `done` is what came of the calls before it, errors among it."""

    def __init__(self, message: str, done: Sequence[tuple[ToolCall, ToolResult]]) -> None:
        super().__init__(message)
        self.done = list(done)


async def executed(calls: Sequence[ToolCall], engine: ToolEngine, session_id: str) -> list[tuple[ToolCall, ToolResult]]:
    """Return each call as it was made and its result; a failed call is kept like any other (rule D87).

    PlanStopped when a call refers to a result that is not there (rule D86): that of a failed call, or a part that the
    result does not have. No call after it is made.
    """
    done: list[tuple[ToolCall, ToolResult]] = []
    values: dict[str, Any] = {}
    ids = [reference_id(planned) for planned in calls]
    for reference, planned in zip(ids, calls, strict=True):
        try:
            call = replace(planned, arguments=resolved(planned.arguments, values, ids))
        except UnresolvedReference as error:
            raise PlanStopped(f"{planned.qualified_name}: {error}", done) from error
        (result,) = await engine.execute(session_id, [call])
        done.append((call, result))
        if not result.is_error:
            values[reference] = result.result
    return done
