"""The loop: asks the model, runs its calls, and yields each message once it is part of the history."""

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Any

from conversations import edits
from conversations.asking import Asking, checked_parameters
from conversations.errors import RunnerUsed
from conversations.history import call_ids_in, mended, with_unique_call_ids
from conversations.messages import Message, call_ids_of
from conversations.models.model import Model
from conversations.offered import OfferedTools
from conversations.policy.limits import Limits
from conversations.resolving import Resolver
from conversations.selection import ToolSelection
from conversations.simulated_user import SimulatedUser
from conversations.state import AWAITING_TOOL_RESULTS, ERROR, State
from conversations.steps import AskModel, AskUser, Finish, Pause, RefuseCalls, RunCalls, Step, failure, next_step
from conversations.time_budget import TimeBudget
from engines.engine import ToolEngine
from engines.errors import TurnAborted
from engines.tool import Tool, ToolCall, ToolResult

_AS_BEFORE: Any = object()


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
        simulated_user: SimulatedUser | None = None,
        catalogue: Iterable[Tool] = (),
    ) -> None:
        """`session_id` is the engine's; `conversation_id` is what the model server sees, the same in every attempt.

        `catalogue` holds tools that are not offered, but may be added by name; the engine knows them too.
        HistoryInvalid when `state.messages` cannot be mended; ToolChoiceInvalid for a tool that is not offered.
        """
        self.state = state
        self._user, self._limits, self._time = simulated_user, limits, TimeBudget(limits.max_seconds)
        self._offered = OfferedTools(tools, state, catalogue=catalogue)
        self._asking = Asking(
            model,
            state,
            self._offered,
            tool_choice=tool_choice,
            seed=seed,
            conversation_id=conversation_id if conversation_id is not None else session_id,
        )
        self._resolver = Resolver(
            state,
            self._offered.now,
            engine=engine,
            session_id=session_id,
            limits=limits,
            time=self._time,
            was_forced=self._asking.was_forced,
        )
        if (history := mended(state.messages)) != state.messages:
            state.replace(history)
        self._taken = call_ids_in(state.messages) | self._resolver.entries.keys()
        self._held: Message | None = None  # the assistant message that the caller is looking at
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

    def set_params(
        self,
        *,
        messages: Sequence[Message] | None = None,
        tools: Sequence[Tool | str] | None = None,
        tool_choice: Any = _AS_BEFORE,
        **sampling: Any,
    ) -> None:
        """Change what the next requests say: what is offered, `temperature`, `top_p`, `max_tokens`, `stop`, `extra`.

        A mutation like the others (rule A7): a yielded text is taken back, and the model is asked anew; calls that
        wait for their results get them first. What is said here holds for the rest of the conversation, also after it
        was resumed; of a `tool_choice` that goes for this runner. An error (ParametersInvalid, ToolsInvalid,
        ToolChoiceInvalid, HistoryInvalid) changes nothing of what it names.
        """
        parameters = checked_parameters(sampling)
        if tools is not None:
            self._offered.replace(tools)
            self._follow_offer()
        if tool_choice is not _AS_BEFORE:
            self._asking.choose(tool_choice)
        if parameters:
            self.state.note_parameters(parameters)
        if messages is None:
            self.append_messages()
        else:
            self.set_messages(messages)

    def add_tools(self, *tools: Tool | str) -> None:
        """Offer more tools from the next request on (rule A16); by name: one that was removed, or of the catalogue.

        ToolsInvalid for one that is offered already (rule A17), and for a name that nothing has. No change of the
        history: the yielded message stays.
        """
        self._offered.add(tools)
        self._follow_offer()

    def remove_tools(self, *names: str) -> None:
        """Offer these no more: a call of one is from now on a call of an unknown tool (rule A16)."""
        self._offered.remove(names)
        self._follow_offer()

    async def tool_response(self) -> list[Message]:
        """The answers to the calls of the yielded message, which run now unless they ran before (rules A4, A6).

        A call runs once, however often it is asked for and whatever the history becomes in between.
        """
        step = self._next_step()
        if self._held is None or not isinstance(step, RunCalls | RefuseCalls):
            return []
        await self._resolve(step)
        known = self._resolver.entries
        return [self._resolver.message_for(call_id) for call_id in call_ids_of(self._held) if call_id in known]

    def pending_calls(self) -> list[ToolCall]:
        """The external calls that a paused conversation waits for."""
        step = self._next_step()
        return self._resolver.pending_calls(step.pending) if isinstance(step, Pause) else []

    def answer(self, results: Iterable[ToolResult]) -> None:
        """Give results of external calls, in any order; a second result for one call is ignored (rule S8).

        HistoryInvalid, before anything is changed, for a call that nobody waits for.
        """
        step = self._next_step()
        self._resolver.answer(step.pending if isinstance(step, Pause) else None, results)

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
                case AskUser():
                    if (said := await self._time.within(self._user_speaks())) is not None:
                        yield said
                case RunCalls() | RefuseCalls() as step:
                    made_by = self.state.messages[step.batch.index]
                    await self._resolve(step)
                    for message in self._while_unedited(self._resolver.insert_answers(made_by)):
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
        reply = await self._time.within(self._asking.ask(step, self._resolver.failed))
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

    async def _user_speaks(self) -> Message | None:
        """Append what the simulated user says; None when it is done."""
        if self._user is None:
            raise RuntimeError("limits.user is set, but there is no simulated user")
        said = await self._user.speak(self.state)
        if said is not None:
            self.state.append(said)
        return said

    async def _resolve(self, step: RunCalls | RefuseCalls) -> None:
        """Find a result for each open call of the batch; `on_error: raise` ends before the turn (decision 2)."""
        made_by = self.state.messages[step.batch.index]
        try:
            await self._resolver.resolve(step)
        except TurnAborted as aborted:
            self._abandon_turn(made_by, str(aborted))

    def _abandon_turn(self, made_by: Message, cause: str) -> None:
        index = edits.index_of(made_by, self.state.messages)
        if index is not None:
            self.state.remove(index)
        self.state.finish(ERROR, failure("tool_failed", cause))

    def _follow_offer(self) -> None:
        self._resolver.tools = self._offered.now
        self._asking.follow_offer()

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
