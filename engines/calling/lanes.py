"""A batch carried out: calls that may overlap run side by side, the others in call order (rule A11)."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from engines.calling.answering import Admitted, Planned, Refused
from engines.errors import TurnAborted
from engines.history import INJECTED, HistoryEntry
from engines.session import Session
from engines.tool import ErrorType, ToolResult

_AT_ONCE = 16
# A call that failed by what it asked for or by its deadline is told to the model even under on_error: raise (E13).
_NEVER_ABORTING = frozenset({None, ErrorType.validation, ErrorType.unknown_tool, ErrorType.timeout})

Answer = Callable[[Session, Admitted], Awaitable[ToolResult]]


async def carried_out(
    session: Session, planned: Sequence[Planned], answer: Answer, *, is_rehearsal: bool = False
) -> list[ToolResult]:
    """Return one result per call, in call order, which is the order of the history too (rules D17, D18).

    TurnAborted after a real failure in a toolset that says `on_error: raise`: its lane goes no further. In a rehearsal
    nothing aborts, and every call sees what those before it came to (rule D15).
    """
    lanes = [] if is_rehearsal or len(planned) == 1 else _lanes(planned)
    if len(lanes) > 1:
        return await _Lanes(session, planned, answer).run(lanes)
    results = []
    for each in planned:
        result = each.result if isinstance(each, Refused) else await answer(session, each)
        session.record(HistoryEntry(each.call, result))
        if not is_rehearsal and _aborts(each, result):
            raise TurnAborted(result)
        results.append(result)
    return results


def _lanes(planned: Sequence[Planned]) -> list[list[int]]:
    """Return which positions wait for each other: all that must keep their order, and each other one by itself."""
    ordered, alone = [], []
    for position, each in enumerate(planned):
        if isinstance(each, Admitted):
            if each.prepared.may_overlap:
                alone.append([position])
            else:
                ordered.append(position)
    return [ordered, *alone] if ordered else alone


class _Lanes:
    """A batch whose calls run side by side, and the results there are by now."""

    def __init__(self, session: Session, planned: Sequence[Planned], answer: Answer) -> None:
        self._session = session
        self._planned = planned
        self._answer = answer
        self._gate = asyncio.Semaphore(_AT_ONCE)
        self._results = {position: each.result for position, each in enumerate(planned) if isinstance(each, Refused)}

    async def run(self, lanes: Sequence[Sequence[int]]) -> list[ToolResult]:
        """Let every lane come to its end, also when another failed; then raise what the first one raised."""
        try:
            outcomes = await asyncio.gather(*map(self._run_lane, lanes), return_exceptions=True)
        finally:  # Also when the job was cancelled: what was done is not forgotten.
            for position, each in enumerate(self._planned):
                if position in self._results:
                    self._session.record(HistoryEntry(each.call, self._results[position]))
        for outcome in outcomes:
            if outcome is not None:
                raise outcome
        return [self._results[position] for position in range(len(self._planned))]

    async def _run_lane(self, lane: Sequence[int]) -> None:
        for position in lane:
            each = self._planned[position]
            if isinstance(each, Admitted):
                async with self._gate:
                    result = self._results[position] = await self._answer(self._session, each)
                if _aborts(each, result):
                    raise TurnAborted(result)


def _aborts(each: Planned, result: ToolResult) -> bool:
    """Whether the result ends the turn: its toolset says so, and the failure is real, not a fault on purpose."""
    if result.error_type in _NEVER_ABORTING or INJECTED in result.metadata:
        return False
    return isinstance(each, Admitted) and each.prepared.defaults.on_error == "raise"
