"""A finished conversation as a model and an engine that say again what they said: the loop can run once more."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from conversations import answers
from conversations.errors import ConversationError
from conversations.messages import JSONObject, Message, assistant, text_of, tool_calls_of
from conversations.models.model import ModelReply, ModelRequest
from conversations.steps import CUT_OFF, PAUSED_BY_MODEL, REFUSALS
from engines.engine import ToolEngine
from engines.session import Session
from engines.tool import ErrorType, Tool, ToolCall, ToolResult

_TRUNCATED = frozenset({"truncated_reply", "truncated_tool_call"})


class RecordEnds(ConversationError):
    """The loop asks for something that did not happen in the recorded conversation."""


class RecordedModel:
    """Gives the recorded replies one after the other."""

    def __init__(self, replies: Iterable[ModelReply], model_id: str, *, role: str = "model") -> None:
        self._replies = list(replies)
        self._given = 0
        self._model_id, self._role = model_id, role

    @property
    def model_id(self) -> str:
        """The recorded one."""
        return self._model_id

    @property
    def left(self) -> int:
        """How many replies nobody asked for."""
        return len(self._replies) - self._given

    async def open(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Nothing to close."""

    async def ask(self, _request: ModelRequest) -> ModelReply:
        """The next reply; RecordEnds after the last one."""
        if not self.left:
            count = len(self._replies)
            raise RecordEnds(f"the loop asks the {self._role} for reply {count + 1}; {count} are recorded")
        self._given += 1
        return self._replies[self._given - 1]


class RecordedEngine(ToolEngine):
    """Answers a call with the result that is recorded for its id; it contacts nothing."""

    def __init__(self, results: Mapping[str, ToolResult]) -> None:
        super().__init__()
        self._results = results

    async def execute(self, _session_id: str, tool_calls: Sequence[ToolCall]) -> list[ToolResult]:
        """The recorded results; RecordEnds for a call that has none."""
        return [self.result_of(call) for call in tool_calls]

    def result_of(self, call: ToolCall) -> ToolResult:
        """The recorded result of one call; RecordEnds when there is none, or when it is another tool's."""
        result = self._results.get(str(call.call_id))
        if result is None:
            raise RecordEnds(
                f"the loop makes the call {call.call_id!r} of {call.qualified_name}; it has no recorded result"
            )
        if answers.NOT_RUN in result.metadata and result.error_type is not ErrorType.timeout:
            raise RecordEnds(f"the loop runs the call {call.call_id!r}, which was not run: {result.error}")
        if result.name != call.qualified_name:
            raise RecordEnds(f"the loop calls {call.qualified_name} as {call.call_id!r}; recorded is {result.name}")
        return result

    async def _call(self, _session: Session, call: ToolCall, _tool: Tool) -> Any:
        return self.result_of(call)


def recorded_replies(
    messages: Sequence[Message], turns: Sequence[int], error_type: str | None, tokens: tuple[int, int]
) -> list[ModelReply]:
    """What the model said at these positions of the messages.

    A record does not hold how each reply ended, but what came after it tells. Of the tokens only the sum is known:
    the last reply brings them.
    """
    last = turns[-1] if turns else -1
    return [
        ModelReply(
            message=dict(messages[position]),
            finish_reason=_finish_reason(messages, position, error_type if position == last else None),
            input_tokens=tokens[0] if position == last else 0,
            output_tokens=tokens[1] if position == last else 0,
            model="",
        )
        for position in turns
    ]


def recorded_user(messages: Sequence[Message], count: int, stop: str, tokens: tuple[int, int]) -> RecordedModel:
    """A simulated user's model that says its last `count` messages again, and then that it is done.

    The last message brings all its tokens: they matter where a budget ended the conversation.
    """
    said = [message for message in messages if message.get("role") == "user"]
    lines = [text_of(message) for message in said[len(said) - count :]]
    replies = [ModelReply(assistant(line), "stop", 0, 0, "") for line in [*lines, stop]]
    if lines:
        replies[-2] = replace(replies[-2], input_tokens=tokens[0], output_tokens=tokens[1])
    return RecordedModel(replies, "", role="simulated user")


def results_by_call(entries: Iterable[JSONObject]) -> dict[str, ToolResult]:
    """A record's results."""
    return {entry["call_id"]: ToolResult.from_dict(entry) for entry in entries}


def _finish_reason(messages: Sequence[Message], position: int, error_type: str | None) -> str:
    message = messages[position]
    if error_type in REFUSALS:
        return str(error_type)
    if error_type in _TRUNCATED:
        return CUT_OFF
    if tool_calls_of(message):
        return "tool_calls"
    follows = messages[position + 1].get("role") if position + 1 < len(messages) else None
    return PAUSED_BY_MODEL if follows == "assistant" else "stop"
