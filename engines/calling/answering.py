"""What stands around each call of a tool: matched, validated, perhaps failed on purpose, looked up, made."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from engines.calling.attempt import Pause, attempted
from engines.calling.faults import PARTIAL_RESULT, STALE_RESULT, ErrorCategory, drawn_fault, spoilt, stale_result
from engines.calling.prepared import PreparedTool, PreparedTools, is_writer
from engines.calling.result_cache import ResultCache
from engines.nearest import listed
from engines.session import Session
from engines.tool import ErrorType, Tool, ToolCall, ToolResult

Call = Callable[[Session, ToolCall, Tool], Awaitable[Any]]


class FaultyResult(Protocol):
    """What a fault of a type looks like on a kind of engine."""

    def __call__(self, category: ErrorCategory, call: ToolCall) -> ToolResult:
        """Return the result, marked as injected."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """A call that will be made: its arguments with schema defaults, its tool, its number in the session."""

    call: ToolCall
    prepared: PreparedTool
    number: int


@dataclass(frozen=True, slots=True)
class Refused:
    """A call that is answered without being made."""

    call: ToolCall
    result: ToolResult


Planned = Admitted | Refused


class Answering:
    """Answers the calls of one engine; `call` is what its kind does for one of them."""

    def __init__(
        self,
        tools: PreparedTools,
        call: Call,
        *,
        faulty_result: FaultyResult,
        error_categories: Sequence[ErrorCategory],
        caches: dict[str, ResultCache],
        pause: Pause,
    ) -> None:
        self._tools = tools
        self._call = call
        self._faulty_result = faulty_result
        self._error_categories = error_categories
        self._caches = caches
        self._pause = pause

    def plan(self, session: Session, calls: Sequence[ToolCall]) -> list[Planned]:
        """Match and validate every call of a batch, and number those that will be made."""
        planned: list[Planned] = []
        number = session.call_count
        for call in calls:
            planned.append(self._planned(session, call, number))
            number += isinstance(planned[-1], Admitted)
        return planned

    def answer(self, session: Session, admitted: Admitted, *, call: Call | None = None) -> Awaitable[ToolResult]:
        """Make one call, or let it fail on purpose; `call` stands in for what the engine does."""
        make = self._call if call is None else call
        if self._error_categories:
            return self._made_unless_faulty(session, admitted, make)
        return self._made(session, admitted, make)

    async def _made_unless_faulty(self, session: Session, admitted: Admitted, make: Call) -> ToolResult:
        name, number = admitted.call.qualified_name, admitted.number
        fault = drawn_fault(self._error_categories, seed=session.seed, call_number=number, tool=name)
        if fault is None:
            return await self._made(session, admitted, make)
        instead = self._instead(fault, admitted, session)
        return spoilt(fault, await self._made(session, admitted, make)) if instead is None else instead

    def _instead(self, fault: ErrorCategory, admitted: Admitted, session: Session) -> ToolResult | None:
        """Return what is told without asking the tool, None when the fault needs its answer or finds none to repeat."""
        if fault.type == PARTIAL_RESULT:
            return None
        if fault.type != STALE_RESULT:
            return self._faulty_result(fault, admitted.call)
        if is_writer(admitted.prepared.tool):  # An old answer in its place would be a lie about what was done.
            return None
        return stale_result(admitted.call, session.history, admitted.prepared.filled)

    def _planned(self, session: Session, call: ToolCall, number: int) -> Planned:
        prepared = self._tools.match(call) if session.needs(call.namespace) else None
        if prepared is None:
            message = f"Unknown tool '{call.qualified_name}'; known tools: {listed(self._tools.names) or 'none'}"
            return Refused(call, ToolResult.failed(call, ErrorType.unknown_tool, message))
        arguments, problem = prepared.arguments_for(call.arguments)
        if problem:
            result = ToolResult.failed(call, ErrorType.validation, f"invalid arguments: {problem}")
            return Refused(call, result)
        return Admitted(call if arguments is call.arguments else replace(call, arguments=arguments), prepared, number)

    async def _made(self, session: Session, admitted: Admitted, make: Call) -> ToolResult:
        """Return what is kept of an equal call, else what the call comes to."""
        prepared, call = admitted.prepared, admitted.call

        def act() -> Awaitable[Any]:
            return make(session, call, prepared.tool)

        session.answering(admitted.number)
        if not prepared.is_cached:
            return await attempted(act, call, prepared, self._pause)
        cache = self._caches[call.namespace]
        return await cache.through(prepared, call, lambda: attempted(act, call, prepared, self._pause))
