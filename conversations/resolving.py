"""Finds a result for every call of a conversation, once: by policy, by its engine, or from outside."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from conversations import answers, edits
from conversations.errors import HistoryInvalid
from conversations.history import OpenCalls, answers_after
from conversations.messages import JSONObject, Message, call_ids_of
from conversations.policy.conflict import TOOK_CONTROL
from conversations.policy.dedup import DUPLICATE_OF, copy_of, duplicates
from conversations.policy.limits import Limits
from conversations.selection import ToolSelection
from conversations.state import State
from conversations.steps import RefuseCalls, RunCalls
from conversations.time_budget import TimeBudget
from conversations.wire.openai import parse_calls, result_message
from engines.engine import ToolEngine
from engines.tool import ToolCall, ToolResult


def _never(_wire_name: str) -> bool:
    return False


class Resolver:
    """The results of one conversation by call id, and how those that are missing are found."""

    def __init__(
        self,
        state: State,
        tools: ToolSelection,
        *,
        engine: ToolEngine,
        session_id: str,
        limits: Limits,
        time: TimeBudget,
        was_forced: Callable[[str], bool] = _never,
    ) -> None:
        """`session_id` is the engine's, active; `was_forced` says of a wire name whether the last reply had to call it.

        `tools` is what is offered by now: whoever changes that says so here.
        """
        self._state, self._limits, self._time = state, limits, time
        self._engine, self._session_id = engine, session_id
        self._was_forced = was_forced
        self.tools = tools
        self.entries: dict[str, JSONObject] = {entry["call_id"]: entry for entry in state.tool_results}
        self.failed = {entry["call_id"] for entry in state.tool_results if entry["error"] is not None}

    async def resolve(self, step: RunCalls | RefuseCalls) -> None:
        """Find a result for each open call of the batch; TurnAborted where a toolset says `on_error: raise`.

        Nothing is found when time runs out before the engine is done: the next step refuses the calls.
        """
        made_by = self._state.messages[step.batch.index]
        call_ids = [call_id for call_id in step.batch.call_ids if call_id not in self.entries]
        if not call_ids:
            return
        if isinstance(step, RefuseCalls):
            self.keep(answers.refuse_all(made_by, call_ids, self.tools, step.error_type, step.reason))
            return
        pending = self._state.pending
        plan = answers.plan(
            made_by,
            call_ids,
            self.tools,
            self._limits,
            calls_before=self._calls_before(made_by),
            known={call_id for call_id in call_ids_of(made_by) if call_id in self.entries or call_id in pending},
        )
        results = await self._run(plan.calls)
        if results is not None:
            self.keep(plan.merged(call_ids, results, self.entries))
            self._state.wait_for([call_id for call_id in plan.waiting(pending) if call_id not in pending])

    def pending_calls(self, pending: OpenCalls) -> list[ToolCall]:
        """The calls that somebody outside is to answer; of equal ones that wait, the first."""
        parsed_calls = parse_calls(self._state.messages[pending.index], self.tools.names)
        copies = {again for again, first in duplicates(parsed_calls).items() if first in pending.call_ids}
        return [
            parsed.call
            for parsed in parsed_calls
            if parsed.call is not None and parsed.call_id in pending.call_ids and parsed.call_id not in copies
        ]

    def answer(self, pending: OpenCalls | None, results: Iterable[ToolResult]) -> None:
        """Take results from outside, in any order; a second one for a call is ignored (rule S8).

        HistoryInvalid, before anything is changed, for a call that nobody waits for.
        """
        given = {str(result.call_id): result for result in results if result.call_id not in self.entries}
        waiting = pending.call_ids if pending is not None else ()
        if strangers := [call_id for call_id in given if call_id not in waiting]:
            raise HistoryInvalid(f"no external call waits for a result of {strangers[0]!r}; pending: {list(waiting)}")
        if pending is None or not given:
            return
        made_by = self._state.messages[pending.index]
        found = {call_id: answers.entry_of(call_id, result) for call_id, result in given.items()}
        copies = duplicates(parse_calls(made_by, self.tools.names))
        found |= {again: copy_of(found[first], again) for again, first in copies.items() if first in found}
        self.keep([found[call_id] for call_id in waiting if call_id in found])
        self.insert_answers(made_by)

    def insert_answers(self, made_by: Message) -> list[Message]:
        """Put the answers known so far behind their message; what was added."""
        index = edits.index_of(made_by, self._state.messages)
        if index is None:
            return []
        present = answers_after(self._state.messages, index)
        new = [call_id for call_id in call_ids_of(made_by) if call_id in self.entries and call_id not in present]
        added = {call_id: self.message_for(call_id) for call_id in new}
        self._state.answer(index, added)
        return list(added.values())

    def message_for(self, call_id: str) -> Message:
        """The tool message that tells a result."""
        return result_message(call_id, ToolResult.from_dict(self.entries[call_id]))

    def keep(self, entries: Sequence[JSONObject]) -> None:
        """Remember results."""
        self._state.append_results(entries)
        self.entries.update((entry["call_id"], entry) for entry in entries)
        self.failed.update(entry["call_id"] for entry in entries if entry["error"] is not None)

    async def _run(self, calls: Sequence[ToolCall]) -> list[ToolResult] | None:
        if not calls:
            return []
        results = await self._time.within(self._engine.execute(self._session_id, calls))
        if results is None:
            return None
        if len(calls) == 1 and self.tools.takes_control(calls[0].qualified_name):
            results = [self._taking_control(results[0])]
        for call, result in zip(calls, results, strict=True):
            self._note_how(call, result)
        return results

    def _note_how(self, call: ToolCall, result: ToolResult) -> None:
        """Add to what the engine noted of the call how it came to be made (rule U17)."""
        name = call.qualified_name
        result.debug["forced"] = self._was_forced(self.tools.names.encode(name))
        result.debug["exclusive"] = self.tools.is_exclusive(name)

    def _taking_control(self, result: ToolResult) -> ToolResult:
        """A tool that failed does not take control: the model is told, and goes on."""
        if result.is_error:
            return result
        metadata = result.metadata | {TOOK_CONTROL: True}
        return ToolResult(result.call_id, result.name, result.result, metadata=metadata, debug=result.debug)

    def _calls_before(self, made_by: Message) -> int:
        """How many calls the messages before this one made; equal ones of a batch count once."""
        known: Mapping[str, Any] = self.entries
        own = (known[call_id] for call_id in call_ids_of(made_by) if call_id in known)
        return self._state.tool_calls - sum(DUPLICATE_OF not in entry["metadata"] for entry in own)
