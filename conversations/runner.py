"""The loop: asks the model, runs its calls, and yields each message once it is part of the history."""

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Any

from conversations import answers, edits
from conversations.errors import HistoryInvalid, RunnerUsed
from conversations.history import answers_after, call_ids_in, mended, with_unique_call_ids
from conversations.messages import JSONObject, Message, call_ids_of
from conversations.models.model import Model, ModelRequest
from conversations.policy.limits import Limits
from conversations.selection import ToolSelection
from conversations.state import AWAITING_TOOL_RESULTS, ERROR, State
from conversations.steps import AskModel, Finish, Pause, RefuseCalls, RunCalls, Step, failure, next_step
from conversations.time_budget import TimeBudget
from conversations.wire.openai import parse_calls, result_message
from engines.chance import derive_seed
from engines.engine import ToolEngine
from engines.errors import TurnAborted
from engines.tool import ToolCall, ToolResult

_SEED_RANGE = 2**31  # some model servers take no larger seed


class ToolRunner:
    """One conversation, as an iterator over its messages; it can be iterated once (rule A15).

    A message is in `state.messages` before it is yielded, and so are all results of its batch: the state is whole at
    every yield. The engine session is the caller's: active before, torn down after. A ModelError reaches the caller and
    leaves the state as it was; a new runner on that state goes on from there, and no call that has a result runs again.
    """

    def __init__(
        self,
        *,
        model: Model,
        engine: ToolEngine,
        session_id: str,
        state: State,
        tools: ToolSelection,
        limits: Limits,
        seed: int = 0,
        tool_choice: Any = None,
        conversation_id: str | None = None,
    ) -> None:
        """`session_id` is the engine's; `conversation_id` is what the model server sees, the same in every attempt.

        HistoryInvalid when `state.messages` cannot be mended; ToolChoiceInvalid for a tool that is not offered.
        """
        self.state = state
        self._model, self._engine, self._session_id = model, engine, session_id
        self._conversation_id = conversation_id if conversation_id is not None else session_id
        self._tools, self._limits, self._seed = tools, limits, seed
        self._tool_choice = tools.choice(tool_choice)
        self._entries = {entry["call_id"]: entry for entry in state.tool_results}
        self._failed = {entry["call_id"] for entry in state.tool_results if entry["error"] is not None}
        self._memory: dict[str, Any] = {}  # what the model's client makes of the history
        if (history := mended(state.messages)) != state.messages:
            state.replace(history)
        self._taken = call_ids_in(state.messages) | self._entries.keys()
        self._held: Message | None = None  # the assistant message that the caller is looking at
        self._time = TimeBudget(limits.max_seconds)
        self._is_used = False

    def __aiter__(self) -> AsyncIterator[Message]:
        """Start; RunnerUsed the second time."""
        if self._is_used:
            raise RunnerUsed("this runner was iterated before; make a new one on its state to go on")
        self._is_used = True
        return self._messages()

    async def until_done(self) -> Message:
        """Run to the end; the last message of the history."""
        async for _ in self:
            pass
        return self.state.messages[-1]

    # What a caller may do to the history (decision 3)

    def append_messages(self, *messages: Message) -> None:
        """Add to the history; the yielded message is taken back, unless its calls still wait for their results.

        Then it stays, and its results come before what is added here (rules A2-A5). HistoryInvalid changes nothing.
        """
        self._take_over(edits.appended(self.state.messages, self._held, messages), keeps_encodings=True)

    def set_messages(self, messages: Sequence[Message]) -> None:
        """Put another history in place (rule A7: also a mutation).

        When the yielded message made calls and is missing in it, it goes in before what was added, or, when the rest
        was rewritten too, at the end: its calls get their results. HistoryInvalid changes nothing.
        """
        self._take_over(edits.replaced(self.state.messages, self._held, messages), keeps_encodings=False)

    async def tool_messages(self) -> list[Message]:
        """The answers to the calls of the yielded message, which run now unless they ran before (rules A4, A6)."""
        step = self._next_step()
        if self._held is None or not isinstance(step, RunCalls | RefuseCalls):
            return []
        await self._resolve(step)
        return [self._tool_message(call_id) for call_id in call_ids_of(self._held) if call_id in self._entries]

    def pending_calls(self) -> list[ToolCall]:
        """The external calls that a paused conversation waits for."""
        step = self._next_step()
        if not isinstance(step, Pause):
            return []
        parsed = parse_calls(self.state.messages[step.pending.index], self._tools.names)
        return [each.call for each in parsed if each.call is not None and each.call_id in step.pending.call_ids]

    def answer(self, results: Iterable[ToolResult]) -> None:
        """Give results of external calls, in any order; a second result for one call is ignored (rule S8).

        HistoryInvalid, before anything is changed, for a call that nobody waits for.
        """
        given = {result.call_id: result for result in results if result.call_id not in self._entries}
        step = self._next_step()
        pending = step.pending.call_ids if isinstance(step, Pause) else ()
        if strangers := [call_id for call_id in given if call_id not in pending]:
            raise HistoryInvalid(f"no external call waits for a result of {strangers[0]!r}; pending: {list(pending)}")
        if isinstance(step, Pause):
            self._keep([answers.entry_of(call_id, given[call_id]) for call_id in pending if call_id in given])
            self._insert_answers(self.state.messages[step.pending.index])

    # The loop

    async def _messages(self) -> AsyncIterator[Message]:
        self._time.start()
        if self.state.status == AWAITING_TOOL_RESULTS:
            self.state.reopen()
        while True:
            match self._next_step():
                case AskModel() as step:
                    if (reply := await self._ask(step)) is not None:
                        self._held = reply
                        yield reply
                        self._held = None
                case RunCalls() | RefuseCalls() as step:
                    made_by = self.state.messages[step.batch.index]
                    await self._resolve(step)
                    for message in self._while_unedited(self._insert_answers(made_by)):
                        yield message
                case Pause() | Finish() as step:
                    self._end(step)
                    return

    def _next_step(self) -> Step:
        return next_step(self.state, self._limits, is_out_of_time=self._time.is_used_up)

    def _end(self, step: Pause | Finish) -> None:
        if isinstance(step, Pause):
            self.state.finish(AWAITING_TOOL_RESULTS)
        else:
            self.state.finish(step.status, step.error)

    def _while_unedited(self, messages: list[Message]) -> Iterator[Message]:
        """The messages, until a caller changes the history they are in."""
        before = self.state.edits
        return takewhile(lambda _: self.state.edits == before, messages)

    async def _ask(self, step: AskModel) -> Message | None:
        """Append the model's reply; None when time ran out."""
        state = self.state
        state.settled = len(state.messages)
        offered = self._tools if step.with_tools and self._tools.tools else None
        request = ModelRequest(
            messages=state.messages,
            encoded_messages=state.encoded_messages(),
            tools=offered.native if offered else None,
            encoded_tools=offered.encoded if offered else None,
            tool_choice=self._choice_now(step) if offered else None,
            seed=derive_seed(self._seed, "turn", state.turns) % _SEED_RANGE,
            session_id=self._conversation_id,
            failed_call_ids=self._failed,
            memory=self._memory,
        )
        reply = await self._time.within(self._model.ask(request))
        if reply is None:
            return None
        message = with_unique_call_ids(reply.message, self._taken, str(len(state.messages)))
        self._taken |= set(call_ids_of(message))
        state.append_reply(
            message,
            finish_reason="refusal" if message.get("refusal") else reply.finish_reason,
            input_tokens=reply.input_tokens,
            output_tokens=reply.output_tokens,
        )
        return message

    def _choice_now(self, step: AskModel) -> Any:
        """A choice that forces a call holds for the first request only (rule U6): else the loop would never end."""
        return self._tool_choice if step.is_first or self._tool_choice in ("auto", "none") else None

    async def _resolve(self, step: RunCalls | RefuseCalls) -> None:
        """Find a result for each open call of the batch; `on_error: raise` ends before the turn (decision 2)."""
        made_by = self.state.messages[step.batch.index]
        call_ids = [call_id for call_id in step.batch.call_ids if call_id not in self._entries]
        if not call_ids:
            return
        if isinstance(step, RefuseCalls):
            self._keep(answers.refuse_all(made_by, call_ids, self._tools, step.error_type, step.reason))
            return
        answered_here = sum(call_id in self._entries for call_id in call_ids_of(made_by))
        plan = answers.plan(made_by, call_ids, self._tools, self._limits, self.state.tool_calls - answered_here)
        try:
            results = await self._time.within(self._engine.execute(self._session_id, plan.calls)) if plan.calls else []
        except TurnAborted as aborted:
            self._abandon_turn(made_by, str(aborted))
            return
        if results is not None:
            self._keep(plan.merged(call_ids, results))
            self.state.wait_for(plan.external)

    def _abandon_turn(self, made_by: Message, cause: str) -> None:
        index = edits.index_of(made_by, self.state.messages)
        if index is not None:
            self.state.remove(index)
        self.state.finish(ERROR, failure("tool_failed", cause))

    def _keep(self, entries: Sequence[JSONObject]) -> None:
        self.state.append_results(entries)
        self._entries.update((entry["call_id"], entry) for entry in entries)
        self._failed.update(entry["call_id"] for entry in entries if entry["error"] is not None)

    def _insert_answers(self, made_by: Message) -> list[Message]:
        """Put the answers known so far behind their message; what was added."""
        index = edits.index_of(made_by, self.state.messages)
        if index is None:
            return []
        present = answers_after(self.state.messages, index)
        new = [call_id for call_id in call_ids_of(made_by) if call_id in self._entries and call_id not in present]
        added = {call_id: self._tool_message(call_id) for call_id in new}
        self.state.answer(index, added)
        return list(added.values())

    def _tool_message(self, call_id: str) -> Message:
        return result_message(call_id, ToolResult.from_dict(self._entries[call_id]))

    def _take_over(self, history: list[Message], *, keeps_encodings: bool) -> None:
        """Make this the history; the encodings of its first messages stay, as far as they are the same objects."""
        state = self.state
        same = 0
        if keeps_encodings:
            pairs = zip(history, state.messages, strict=False)
            same = sum(1 for _ in takewhile(lambda pair: pair[0] is pair[1], pairs))
        if same == 0:
            state.replace(history)
        else:
            state.remove(same)
            state.append(*history[same:])
        state.reopen()
        self._taken |= call_ids_in(history)
        if self._held is not None and (at := edits.maker_of(call_ids_of(self._held), history)) is not None:
            self._held = history[at]
