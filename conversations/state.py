"""State: everything a conversation is, as plain JSON; it grows by appending, and each message is encoded once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from conversations import checkpoints
from conversations.answers import NOT_RUN
from conversations.encoding import encode_json
from conversations.errors import CheckpointUnusable
from conversations.history import answers_after, call_ids_in
from conversations.messages import JSONObject, Message, call_ids_of
from conversations.policy.dedup import DUPLICATE_OF
from conversations.wire.names import WireNames
from conversations.wire.openai import parse_calls
from engines.recipes.sub_agent import usage_by_tool
from engines.tool import ToolCall, ToolResult

COMPLETED = "completed"
AWAITING_TOOL_RESULTS = "awaiting_tool_results"
ERROR = "error"
CANCELLED = "cancelled"

_NUMBERS = ("turns", "tool_calls", "input_tokens", "output_tokens")
_OUTCOME = ("status", "error", "finish_reason", "started_at", "pending")
_SELDOM = ("user", "offered", "parameters")  # written when there is something to write


@dataclass(frozen=True, slots=True)
class Mark:
    """A point in a state's life; `Mark()` is the point before everything."""

    revision: int = 0
    messages: int = 0
    tool_results: int = 0
    edits: int = 0


@dataclass(slots=True)
class State:
    """One conversation. Read its lists; change them only through its methods, which keep the encodings true.

    `tool_results` holds the record's entries `{call_id, name, result, error, error_type, metadata}`; `turns` counts
    model calls, `tool_calls` answered calls (equal ones of a batch once), `edits` how often the history was changed
    instead of grown; `error` is `{type, message}`; `status` is None until the end.
    """

    messages: list[Message] = field(default_factory=list)
    tool_results: list[JSONObject] = field(default_factory=list)
    turns: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    revision: int = 0
    edits: int = 0
    status: str | None = None
    error: JSONObject | None = None
    finish_reason: str | None = None
    started_at: str | None = None
    pending: list[str] = field(default_factory=list)  # call ids that somebody outside will answer
    user: JSONObject = field(default_factory=dict)  # what the simulated user keeps: turns, tokens, its own history
    offered: JSONObject = field(default_factory=dict)  # tools added and removed since the beginning
    parameters: JSONObject = field(default_factory=dict)  # what a caller says of sampling, over the model's settings
    settled: int = field(default=0, compare=False)  # a cache: every call before this message index is answered
    _encoded: list[bytes] = field(default_factory=list, repr=False, compare=False)
    _encoded_results: list[bytes] = field(default_factory=list, repr=False, compare=False)

    # Growing

    def append(self, *messages: Message) -> None:
        """Add messages at the end."""
        self.messages.extend(messages)
        self.revision += 1

    def append_reply(self, message: Message, *, finish_reason: str, input_tokens: int, output_tokens: int) -> None:
        """Add what the model said, and count the call."""
        self.append(message)
        self.turns += 1
        self.input_tokens += input_tokens
        self.output_tokens += output_tokens
        self.finish_reason = finish_reason

    def append_results(self, entries: Sequence[JSONObject]) -> None:
        """Keep results of tool calls in the record's form; their messages are added separately."""
        if entries:
            self.tool_results.extend(entries)
            self.tool_calls += sum(DUPLICATE_OF not in entry["metadata"] for entry in entries)
            if self.pending:
                answered = {entry["call_id"] for entry in entries}
                self.pending = [call_id for call_id in self.pending if call_id not in answered]
            self.revision += 1

    def wait_for(self, call_ids: Sequence[str]) -> None:
        """Leave these calls to somebody outside (decision 5)."""
        if call_ids:
            self.pending = [*self.pending, *call_ids]
            self.revision += 1

    def note_user(self, **kept: Any) -> None:
        """Keep something of the simulated user."""
        self.user |= kept
        self.revision += 1

    def note_offered(self, changes: JSONObject) -> None:
        """Keep which tools were added and removed."""
        self.offered = changes
        self.revision += 1

    def note_parameters(self, parameters: JSONObject) -> None:
        """Keep what requests say of sampling from now on."""
        self.parameters = self.parameters | parameters
        self.revision += 1

    def count_user_call(self, input_tokens: int, output_tokens: int) -> None:
        """Count a call of the simulated user's model: its tokens are not the assistant's."""
        for name, more in (("model_calls", 1), ("input_tokens", input_tokens), ("output_tokens", output_tokens)):
            self.user[name] = self.user.get(name, 0) + more
        self.revision += 1

    @property
    def all_tokens(self) -> int:
        """Every token of the conversation, the simulated user's and the sub-agents' too."""
        others = [self.user, *usage_by_tool(self.tool_results, without=(DUPLICATE_OF,)).values()]
        theirs: int = sum(each.get("input_tokens", 0) + each.get("output_tokens", 0) for each in others)
        return self.input_tokens + self.output_tokens + theirs

    def finish(self, status: str, error: JSONObject | None = None) -> None:
        """End the conversation."""
        if (self.status, self.error) != (status, error):
            self.status, self.error = status, error
            self.revision += 1

    # Editing

    def insert(self, index: int, messages: Sequence[Message]) -> None:
        """Add messages in the middle; at the end this is an append."""
        if index >= len(self.messages):
            self.append(*messages)
            return
        self.encoded_messages()
        self.messages[index:index] = messages
        self._encoded[index:index] = [encode_json(message) for message in messages]
        self._edited(index)

    def answer(self, index: int, answers: Mapping[str, Message]) -> None:
        """Put answers behind the message at `index` that made their calls, in call order, between those it has."""
        present = answers_after(self.messages, index)
        if not present:
            self.insert(index + 1, list(answers.values()))
            return
        position = index + 1
        for call_id in call_ids_of(self.messages[index]):
            if call_id in answers:
                self.insert(position, [answers[call_id]])
            position += call_id in answers or call_id in present

    def remove(self, start: int, stop: int | None = None) -> None:
        """Take the messages from `start` up to `stop` (the end) out."""
        if start < len(self.messages):
            self.encoded_messages()
            del self.messages[start:stop], self._encoded[start:stop]
            self._edited(start)

    def replace(self, messages: Sequence[Message]) -> None:
        """Put another history in place; every message of it counts as new."""
        self.messages[:] = messages
        self._encoded.clear()
        self._edited(0)

    def reopen(self) -> None:
        """Forget how the last turn and the conversation ended, because the history was changed."""
        self.status = self.error = self.finish_reason = None
        if self.pending:  # a caller may have answered by hand
            answered = {message.get("tool_call_id") for message in self.messages if message.get("role") == "tool"}
            self.pending = [call_id for call_id in self.pending if call_id not in answered]
        self.revision += 1

    def _edited(self, index: int) -> None:
        self.settled = min(self.settled, index)
        if self.pending:  # nobody waits for a call that is no longer there
            present = call_ids_in(self.messages)
            self.pending = [call_id for call_id in self.pending if call_id in present]
        self.edits += 1
        self.revision += 1

    # Encoding

    def encoded_messages(self) -> list[bytes]:
        """The JSON of each message, made once in its life: for the model client, the checkpoint and the record."""
        return _encoded_through(self.messages, self._encoded)

    def encoded_results(self) -> list[bytes]:
        """The JSON of each entry of `tool_results`, made once."""
        return _encoded_through(self.tool_results, self._encoded_results)

    def to_json(self) -> bytes:
        """The whole state."""
        return self.delta(Mark())

    @classmethod
    def from_json(cls, data: bytes) -> Self:
        """The state that `to_json` gave; CheckpointUnusable when the bytes are not what it gave."""
        state = cls()
        state._take_over(checkpoints.opened(data))
        return state

    # Checkpoints

    def mark(self) -> Mark:
        """This point, for a later `delta`."""
        return Mark(self.revision, len(self.messages), len(self.tool_results), self.edits)

    def delta(self, since: Mark) -> bytes:
        """What came after `since`: as long as what was added, not as the history. `b""` when nothing changed.

        After an edit it holds all messages again.
        """
        if since.revision == self.revision > 0:
            return b""
        kept = since.messages if since.edits == self.edits else 0
        body: JSONObject = {
            "base": since.revision,
            "revision": self.revision,
            "edits": self.edits,
            "kept_messages": kept,
            "kept_results": since.tool_results,
            "messages": checkpoints.spliced(self.encoded_messages()[kept:]),
            "tool_results": checkpoints.spliced(self.encoded_results()[since.tool_results :]),
        }
        for name in (*_NUMBERS, *_OUTCOME):
            body[name] = getattr(self, name)
        body |= {name: value for name in _SELDOM if (value := getattr(self, name))}
        return checkpoints.sealed(encode_json(body))

    @classmethod
    def restore(cls, deltas: Iterable[bytes], *, start: "State | None" = None) -> "State":
        """The state after the deltas, on top of `start` (else of nothing); see `restored`."""
        return restored(deltas, start=start).state

    # For engines

    def history_entries(self, names: WireNames, user_names: WireNames | None = None) -> list[JSONObject]:
        """The engine's history, `[{"call", "result"}]`: the calls that reached it, in the order of their results.

        Calls whose message a caller took out of the history are gone from it, and with them their arguments. Those of
        the simulated user, whose tools `user_names` knows, stand where they were made.
        """
        calls = {parsed.call_id: parsed.call for message in self.messages for parsed in parse_calls(message, names)}
        asides = self.user.get("asides", ()) if user_names is not None else ()
        entries: list[JSONObject] = []
        for position in range(len(self.tool_results) + 1):
            for aside in asides:
                if aside["results_before"] == position and user_names is not None:
                    own = {parsed.call_id: parsed.call for parsed in parse_calls(aside["messages"][0], user_names)}
                    entries += _performed(aside["entries"], own)
            entries += _performed(self.tool_results[position : position + 1], calls)
        return entries

    def _take_over(self, body: JSONObject) -> None:
        """Continue with a delta's body; CheckpointUnusable, and no change, when it does not continue this state."""
        kept = body.get("kept_messages")
        if body.get("base") != self.revision or body.get("kept_results") != len(self.tool_results):
            raise CheckpointUnusable(f"a checkpoint does not continue revision {self.revision}; it is left out")
        if kept not in {0, len(self.messages)} or not body.keys() >= {"edits", "messages", *_NUMBERS, *_OUTCOME}:
            raise CheckpointUnusable("a checkpoint lacks fields or skips messages; it is left out")
        if kept == 0:
            self.messages.clear()
            self._encoded.clear()
            self.settled = 0
        self.messages.extend(body["messages"])
        self.tool_results.extend(body["tool_results"])
        for name in ("revision", "edits", *_NUMBERS, *_OUTCOME):
            setattr(self, name, body[name])
        for name in _SELDOM:
            setattr(self, name, body.get(name, {}))


@dataclass(frozen=True, slots=True)
class Restored:
    """A state put together from deltas; `problem` says why those after the first `used` ones were left out."""

    state: State
    used: int
    problem: str | None = None


def restored(deltas: Iterable[bytes], *, start: State | None = None) -> Restored:
    """Apply deltas in order; the first bad one ends the work, and what came before it stands (rule F38)."""
    state = State() if start is None else start
    used = 0
    for delta in deltas:
        if delta:
            try:
                state._take_over(checkpoints.opened(delta))  # noqa: SLF001 (one idea in one file)
            except CheckpointUnusable as unusable:
                return Restored(state, used, str(unusable))
        used += 1
    return Restored(state, used)


def _performed(entries: Sequence[JSONObject], calls: Mapping[str, ToolCall | None]) -> list[JSONObject]:
    """What an engine's history holds of these results."""
    return [
        {"call": call.to_dict(), "result": ToolResult.from_dict(entry).to_dict()}
        for entry in entries
        if not entry["metadata"].keys() & {NOT_RUN, DUPLICATE_OF} and (call := calls.get(entry["call_id"])) is not None
    ]


def _encoded_through(values: Sequence[Any], encoded: list[bytes]) -> list[bytes]:
    """Encode the values that came after those in `encoded`."""
    if len(encoded) < len(values):
        encoded.extend(encode_json(value) for value in values[len(encoded) :])
    return encoded
