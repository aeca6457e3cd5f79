"""A model that says what its script says, and remembers what it was asked."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

from conversations.errors import ModelError
from conversations.messages import JSONObject, Message, assistant, tool_call
from conversations.models.model import ModelReply, ModelRequest

Line = Message | ModelReply | ModelError | Callable[[ModelRequest], Message]


@dataclass
class Asked:
    """What one request held at the time it was made."""

    messages: list[Message]
    encoded_messages: list[bytes]
    tools: list[JSONObject] | None
    encoded_tools: bytes | None
    tool_choice: Any
    seed: int | None
    session_id: str
    parameters: JSONObject = field(default_factory=dict)
    extras: bytes = b""


@dataclass
class ScriptedModel:
    """One line of the script answers one request; a ModelError is raised; a script that ends is a failed test."""

    script: list[Line]
    asked: list[Asked] = field(default_factory=list)
    model_id: str = "scripted"

    async def open(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Nothing to close."""

    async def ask(self, request: ModelRequest) -> ModelReply:
        """The next line of the script."""
        self.asked.append(
            Asked(
                list(request.messages),
                list(request.encoded_messages or ()),
                request.tools,
                request.encoded_tools,
                request.tool_choice,
                request.seed,
                request.session_id,
                dict(request.parameters),
                request.encoded_extras,
            )
        )
        assert self.script, "the model was asked more often than its script has lines"
        line = self.script.pop(0)
        if isinstance(line, ModelError):
            raise line
        if isinstance(line, ModelReply):
            return line
        return reply(line(request) if callable(line) else line)


def reply(message: Message, finish_reason: str | None = None) -> ModelReply:
    """A message as a reply of 10 tokens in and 5 out."""
    reason = finish_reason or ("tool_calls" if message.get("tool_calls") else "stop")
    return ModelReply(message, reason, input_tokens=10, output_tokens=5, model="scripted")


def calls(*wanted: tuple[str, str, JSONObject | str], text: str | None = None) -> Message:
    """An assistant message that makes calls, each `(call id, wire name, arguments)`; text goes in as it is."""
    return assistant(
        text,
        [
            tool_call(call_id, name, arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode())
            for call_id, name, arguments in wanted
        ],
    )


def script(*lines: Line) -> ScriptedModel:
    """A model with this script."""
    return ScriptedModel(list(lines))
