"""The simulated user: a model that plays the one who asks, with tools of its own, so that conversations go on."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from conversations import answers
from conversations.encoding import encode_json
from conversations.errors import MalformedReply
from conversations.history import with_unique_call_ids
from conversations.messages import JSONObject, Message, assistant, call_ids_of, system, text_of, tool_calls_of, user
from conversations.models.model import Model, ModelReply, ModelRequest
from conversations.policy.limits import Limits
from conversations.selection import ToolSelection
from conversations.state import State
from conversations.user_settings import GOAL_MARK, PLAYS_USER, UserSettings
from conversations.wire.openai import result_message
from engines.chance import derive_seed
from engines.engine import ToolEngine
from engines.tool import ToolResult

INSTRUCTIONS = (
    f"{PLAYS_USER} Write only what this user says next, as one short message, and never what the assistant says. "
    "Tell what you know bit by bit, as people do, and do not make up what you were not told. "
    "When you have what you want, or see that the assistant cannot help you, write {stop} and nothing else."
)
_BEGINNING = user("(The conversation begins. Say what you want.)")
_GO_ON = "(Go on: you are not done yet.)"
_MOST_ROUNDS = 5
_MOST_TRIES = 3
_SEED_RANGE = 2**31


@dataclass(slots=True)
class SimulatedUser:
    """The user of one conversation. What it keeps lies in `state.user`, so another process can go on with it.

    `state.user`: `persona`, `turns`, `model_calls`, `input_tokens`, `output_tokens`, `is_done`, and `asides`, its own
    tool calls: `[{"after": spoken messages before, "results_before": entries of the record before, "messages": […]}]`.
    """

    model: Model
    settings: UserSettings
    persona: str
    goal: str
    seed: int
    conversation_id: str
    engine: ToolEngine
    session_id: str
    tools: ToolSelection | None = None
    limits: Limits = field(default_factory=Limits)
    _memory: dict[str, Any] = field(default_factory=dict)  # what the model's client makes of the view
    _views: dict[int, tuple[Message, Message | None]] = field(
        default_factory=dict
    )  # by id: a message, and as the user sees it
    _encodings: dict[int, tuple[Message, bytes]] = field(default_factory=dict)  # by id: message and JSON
    _instructions: Message | None = None

    async def speak(self, state: State) -> Message | None:
        """What the user says next; None when it is done. A ModelError reaches the caller and counts nothing."""
        kept = state.user
        kept.setdefault("persona", self.persona)
        is_free = int(kept.get("turns", 0)) >= self.settings.min_user_turns
        nudge = ""
        for attempt in range(_MOST_TRIES):
            reply = await self._reply(state, nudge, attempt)
            said = text_of(reply.message)
            wants_to_stop = self.settings.stop in said
            text = said.replace(self.settings.stop, "").strip()
            if wants_to_stop and is_free:
                state.note_user(is_done=True)
                return None
            if text:
                state.note_user(turns=int(kept.get("turns", 0)) + 1)
                return user(text)
            nudge = _GO_ON
        raise MalformedReply(f"the simulated user (model {self.model.model_id}) said nothing {_MOST_TRIES} times")

    async def _reply(self, state: State, nudge: str, attempt: int) -> ModelReply:
        """Ask until the user says something instead of calling its tools."""
        rounds = 0
        while True:
            offered = self.tools if self.tools is not None and rounds < _MOST_ROUNDS else None
            rounds += 1
            messages = [*self._seen(state), *([user(nudge)] if nudge else ())]
            number = derive_seed(self.seed, "user", int(state.user.get("model_calls", 0)), attempt)
            request = ModelRequest(
                messages,
                encoded_messages=[self._encoded(message) for message in messages],
                tools=offered.native if offered else None,
                encoded_tools=offered.encoded if offered else None,
                seed=number % _SEED_RANGE,
                session_id=f"{self.conversation_id}.user",
                memory=self._memory,
            )
            reply = await self.model.ask(request)
            state.count_user_call(reply.input_tokens, reply.output_tokens)
            if offered is None or not tool_calls_of(reply.message):
                return reply
            await self._call_tools(state, reply.message, offered)

    async def _call_tools(self, state: State, message: Message, tools: ToolSelection) -> None:
        """Run the user's own calls on the session; they and their results stay its own."""
        asides = state.user.get("asides", [])
        made = with_unique_call_ids(message, set(), f"user_{len(asides)}")
        call_ids = call_ids_of(made)
        plan = answers.plan(made, call_ids, tools, self.limits, calls_before=0)
        results = await self.engine.execute(self.session_id, plan.calls) if plan.calls else []
        entries = plan.merged(call_ids, results, {})
        told = [result_message(entry["call_id"], ToolResult.from_dict(entry)) for entry in entries]
        aside: JSONObject = {
            "after": _spoken(state.messages),
            "results_before": len(state.tool_results),
            "messages": [made, *told],
            "entries": entries,
        }
        state.note_user(asides=[*asides, aside])

    def _seen(self, state: State) -> list[Message]:
        """The conversation through the user's eyes: roles changed over, the assistant's calls left out."""
        asides: Sequence[JSONObject] = state.user.get("asides", ())
        seen = list[Message]()
        position = 0
        for message in state.messages:
            if (view := self._view_of(message)) is not None:
                seen += [*_asides_at(asides, position), view]
                position += 1
        seen += _asides_at(asides, position)
        if not seen or seen[0]["role"] != "user":
            seen.insert(0, _BEGINNING)
        return [self._told(), *seen]

    def _told(self) -> Message:
        """What the user's model is told first: the same object each time."""
        if self._instructions is None:
            lines = [INSTRUCTIONS.replace("{stop}", self.settings.stop)]
            if self.persona:
                lines.append(f"Who you are: {self.persona}")
            if self.goal:
                lines.append(f"{GOAL_MARK}{self.goal}")
            self._instructions = system("\n\n".join(lines))
        return self._instructions

    def _view_of(self, message: Message) -> Message | None:
        """A message with its role changed over, made once; None for one that the user does not see."""
        known = self._views.get(id(message))
        if known is None or known[0] is not message:
            known = self._views[id(message)] = (message, _turned(message))
        return known[1]

    def _encoded(self, message: Message) -> bytes:
        """The JSON of a message of the view, made once: a request must not cost more the longer the talk was."""
        known = self._encodings.get(id(message))
        if known is None or known[0] is not message:
            known = self._encodings[id(message)] = (message, encode_json(message))
        return known[1]


def _turned(message: Message) -> Message | None:
    text = text_of(message)
    if message.get("role") == "user" and text:
        return assistant(text)
    return user(text) if message.get("role") == "assistant" and text else None


def _spoken(messages: Sequence[Message]) -> int:
    return sum(_turned(message) is not None for message in messages)


def _asides_at(asides: Sequence[JSONObject], position: int) -> list[Message]:
    return [message for aside in asides if aside["after"] == position for message in aside["messages"]]
