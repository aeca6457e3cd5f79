"""What makes a history valid: each call id is answered once, in call order, right after its message (decision 1)."""

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from conversations.encoding import encode_json
from conversations.errors import HistoryInvalid
from conversations.messages import JSONObject, Message, call_ids_of, tool_calls_of

ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})


@dataclass(frozen=True, slots=True)
class OpenCalls:
    """The calls of the assistant message at `index` that have no answer yet, in call order."""

    index: int
    call_ids: tuple[str, ...]


def first_open_calls(messages: Sequence[Message], start: int = 0) -> OpenCalls | None:
    """The first assistant message from `start` on with unanswered calls; the history must be a mended one."""
    for index in range(start, len(messages)):
        if call_ids := call_ids_of(messages[index]):
            answered = answers_after(messages, index)
            unanswered = tuple(call_id for call_id in call_ids if call_id not in answered)
            if unanswered:
                return OpenCalls(index, unanswered)
    return None


def answers_after(messages: Sequence[Message], index: int) -> dict[str, Message]:
    """The tool messages that follow the message at `index`, by call id."""
    answers: dict[str, Message] = {}
    for position in range(index + 1, len(messages)):
        if messages[position].get("role") != "tool":
            break
        answers[messages[position]["tool_call_id"]] = messages[position]
    return answers


def call_ids_in(messages: Iterable[Message]) -> set[str]:
    """Every call id that the messages use."""
    return {call_id for message in messages for call_id in call_ids_of(message)}


def with_unique_call_ids(message: Message, taken: Container[str], stem: str) -> Message:
    """The message, empty or repeated call ids replaced by `call_{stem}_{position}` (rule U19); else itself."""
    used: set[str] = set()
    calls = []
    for position, call in enumerate(tool_calls_of(message)):
        call_id = call.get("id")
        if not isinstance(call_id, str) or not call_id or call_id in used or call_id in taken:
            call_id = _free_id(f"call_{stem}_{position}", lambda made: made in used or made in taken)
        used.add(call_id)
        calls.append(call if call_id == call.get("id") else call | {"id": call_id})
    return message if calls == tool_calls_of(message) else message | {"tool_calls": calls}


def mended(messages: Sequence[Message]) -> list[Message]:
    """A caller's history as a valid one, except for calls that still wait for their answer.

    Answers move behind their message in call order, second answers to one call are dropped, repeated call ids are
    replaced (with those of their answers). HistoryInvalid for what is no message and for an answer without its call.
    """
    mending = _Mending()
    for index, message in enumerate(messages):
        mending.take(index, message)
    return mending.messages()


@dataclass(slots=True)
class _Turn:
    """A message with the answers that belong behind it."""

    message: Message
    answers: dict[str, Message] = field(default_factory=dict)


@dataclass(slots=True)
class _Mending:
    turns: list[_Turn] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    waiting: dict[str, list[tuple[_Turn, str]]] = field(default_factory=dict)  # id as the caller wrote it → its calls
    answered: set[str] = field(default_factory=set)

    def take(self, index: int, message: Message) -> None:
        if not _is_object(message) or message.get("role") not in ROLES:
            roles = ", ".join(sorted(ROLES))
            raise HistoryInvalid(f"messages[{index}]: a message is an object with a role, one of {roles}")
        if message["role"] == "tool":
            self._take_answer(index, message)
        elif message["role"] == "assistant" and message.get("tool_calls"):
            self._take_calls(index, message)
        else:
            self.turns.append(_Turn(message))

    def messages(self) -> list[Message]:
        flat: list[Message] = []
        for turn in self.turns:
            flat.append(turn.message)
            flat.extend(turn.answers[call_id] for call_id in call_ids_of(turn.message) if call_id in turn.answers)
        return flat

    def _take_calls(self, index: int, message: Message) -> None:
        if not isinstance(message["tool_calls"], list):
            raise HistoryInvalid(f"messages[{index}]: tool_calls is a list, got {message['tool_calls']!r}")
        calls = [_checked_call(call, index) for call in message["tool_calls"]]
        named = message if calls == message["tool_calls"] else message | {"tool_calls": calls}
        turn = _Turn(with_unique_call_ids(named, self.used, str(index)))
        self.turns.append(turn)
        for call, call_id in zip(calls, call_ids_of(turn.message), strict=True):
            self.used.add(call_id)
            self.waiting.setdefault(str(call.get("id") or ""), []).append((turn, call_id))

    def _take_answer(self, index: int, message: Message) -> None:
        written = str(message.get("tool_call_id") or "")
        calls = self.waiting.get(written)
        if not calls:
            if written in self.answered:
                return
            raise HistoryInvalid(f"messages[{index}]: answers the call {written!r}, which no message before it made")
        latest = calls[-1][0]
        turn, call_id = calls.pop(next(at for at, (turn, _) in enumerate(calls) if turn is latest))
        self.answered.add(written)
        is_renamed = message.get("tool_call_id") != call_id
        turn.answers[call_id] = message | {"tool_call_id": call_id} if is_renamed else message


def _checked_call(call: JSONObject, index: int) -> JSONObject:
    function = call.get("function") if _is_object(call) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        shape = '{"id", "type": "function", "function": {"name", "arguments"}}'
        raise HistoryInvalid(f"messages[{index}]: a tool call is {shape}, got {call!r}")
    if isinstance(function.get("arguments"), str):
        return call
    arguments = encode_json(function.get("arguments") or {}).decode()
    return call | {"type": "function", "function": function | {"arguments": arguments}}


def _is_object(value: Any) -> bool:
    """What comes from a caller may be anything."""
    return isinstance(value, dict)


def _free_id(stem: str, is_taken: Callable[[str], bool]) -> str:
    made, number = stem, 0
    while is_taken(made):
        number += 1
        made = f"{stem}_{number}"
    return made
