"""What an agent answered, as a tool's result: its words, its data, or why there are none."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from a2a.types import Message, Part, Role, StreamResponse, Task, TaskState
from google.protobuf.json_format import MessageToDict

from engines.errors import ToolFailed
from engines.mcp.text import printable
from engines.plain import JSONObject
from engines.tool import ErrorType

_REASON_CHARS = 2000
_FAILED = {
    TaskState.TASK_STATE_FAILED: (ErrorType.execution, "failed"),
    TaskState.TASK_STATE_REJECTED: (ErrorType.permission, "was rejected"),
    TaskState.TASK_STATE_CANCELED: (ErrorType.execution, "was cancelled"),
    TaskState.TASK_STATE_AUTH_REQUIRED: (ErrorType.permission, "needs another authorization"),
}
UNDER_WAY = frozenset({TaskState.TASK_STATE_UNSPECIFIED, TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING})


@dataclass(frozen=True, slots=True)
class Told:
    """A result, and where the conversation with the agent stands: `task_id` when that task asked for more."""

    result: Any
    context_id: str
    task_id: str = ""


def told_by(response: StreamResponse) -> Told:
    """Read a message, or a task that is no longer under way; ToolFailed for one that failed."""
    if response.HasField("task"):
        return told_by_task(response.task)
    return Told(_result(response.message.parts), response.message.context_id)


def told_by_task(task: Task) -> Told:
    """Read a task that ended or asks for more."""
    state = task.status.state
    if state in _FAILED:
        error_type, how = _FAILED[state]
        reason = printable(_text(task.status.message.parts), _REASON_CHARS)
        raise ToolFailed(error_type, f"the agent's task {how}: {reason}".removesuffix(": "))
    parts = [part for artifact in task.artifacts for part in artifact.parts]
    waits = state == TaskState.TASK_STATE_INPUT_REQUIRED
    if waits or not parts:
        parts = [*parts, *(task.status.message.parts or _last_words(task.history))]
    return Told(_result(parts), task.context_id, task.id if waits else "")


def _result(parts: Sequence[Part]) -> Any:
    """A text as it is, one piece of data as it is, and anything else as `{"text"?, "data"?, "files"?}`."""
    text = _text(parts)
    data = [_plain(MessageToDict(part.data)) for part in parts if part.HasField("data")]
    files = [_file(part) for part in parts if part.HasField("url") or part.HasField("raw")]
    if not data and not files:
        return text
    if len(data) == 1 and not text and not files:
        return data[0]
    found = {"text": text, "data": data, "files": files}
    return {name: value for name, value in found.items() if value}


def _text(parts: Sequence[Part]) -> str:
    return "\n".join(part.text for part in parts if part.HasField("text"))


def _file(part: Part) -> JSONObject:
    """What a file is and where; its own bytes are not for a conversation."""
    said: JSONObject = {"filename": part.filename, "media_type": part.media_type, "url": part.url}
    if part.HasField("raw"):
        said["bytes"] = len(part.raw)
    return {name: value for name, value in said.items() if value}


def _last_words(history: Sequence[Message]) -> Sequence[Part]:
    return next((message.parts for message in reversed(history) if message.role == Role.ROLE_AGENT), ())


def _plain(value: Any) -> Any:
    """Whole numbers as integers again: protobuf has but one kind of number."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT else value


_EXACT = 2**53
