"""One batch of calls shared out among several engines, and put together again in call order (rule D60)."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from engines.history import History, HistoryEntry
from engines.tool import ToolCall, ToolResult

RunCalls = Callable[[str, Sequence[ToolCall]], Awaitable[list[ToolResult]]]


@dataclass(slots=True)
class Batch:
    """The calls, which engine has which positions, and the results there are by now."""

    calls: Sequence[ToolCall]
    positions: dict[str, list[int]] = field(default_factory=dict)
    results: dict[int, ToolResult] = field(default_factory=dict)

    async def run(self, run_calls: Mapping[str, RunCalls], session_id: str) -> None:
        """Let every engine run its calls, all at the same time; the first engine's failure is raised at the end."""
        if len(self.positions) == 1:  # Most batches: no task is needed.
            (name,) = self.positions
            await self._run_one(name, run_calls[name], session_id)
            return
        outcomes = await asyncio.gather(
            *(self._run_one(name, run_calls[name], session_id) for name in self.positions), return_exceptions=True
        )
        for outcome in outcomes:
            if outcome is not None:
                raise outcome

    def entries(self, histories: Mapping[str, History]) -> Iterator[HistoryEntry]:
        """Yield what has been called, in call order, as the engines recorded it (with schema defaults)."""
        recorded = {
            position: entry
            for name, positions in self.positions.items()
            for position, entry in self._placed(positions, histories[name].own())
        }
        for position, call in enumerate(self.calls):
            if position in recorded:
                yield recorded[position]
            elif position in self.results:
                yield HistoryEntry(call, self.results[position])

    def finished(self) -> list[ToolResult]:
        """Return one result per call, in call order (rule D18)."""
        return [self.results[position] for position in range(len(self.calls))]

    def _placed(self, positions: Sequence[int], entries: Sequence[HistoryEntry]) -> Iterator[tuple[int, HistoryEntry]]:
        """Find each entry's position; calls that were not made, after an abort or a cancellation, have none."""
        if len(entries) == len(positions):
            yield from zip(positions, entries, strict=True)
            return
        waiting = iter(positions)
        for entry in entries:
            of = (entry.call.call_id, entry.call.qualified_name)
            for position in waiting:
                if (self.calls[position].call_id, self.calls[position].qualified_name) == of:
                    yield position, entry
                    break

    async def _run_one(self, name: str, run_calls: RunCalls, session_id: str) -> None:
        positions = self.positions[name]
        results = await run_calls(session_id, [self.calls[position] for position in positions])
        self.results.update(zip(positions, results, strict=True))
