"""Messages: plain JSON objects in OpenAI's chat shape, with wire tool names; the history is a list of them."""

from collections.abc import Sequence
from typing import Any

JSONObject = dict[str, Any]
Message = dict[str, Any]


def system(text: str) -> Message:
    """The instruction that stands first."""
    return {"role": "system", "content": text}


def user(text: str) -> Message:
    """What the user says."""
    return {"role": "user", "content": text}


def assistant(text: str | None = None, tool_calls: Sequence[JSONObject] = ()) -> Message:
    """What the model says; `content` is null when it only calls tools."""
    message: Message = {"role": "assistant", "content": text}
    if tool_calls:
        message["tool_calls"] = list(tool_calls)
    return message


def tool_call(call_id: str, wire_name: str, arguments: str) -> JSONObject:
    """One entry of an assistant message's `tool_calls`; `arguments` is a JSON string."""
    return {"id": call_id, "type": "function", "function": {"name": wire_name, "arguments": arguments}}


def tool_message(call_id: str, content: str) -> Message:
    """The answer to one call."""
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def tool_calls_of(message: Message) -> list[JSONObject]:
    """The calls of an assistant message; empty for every other message."""
    if message.get("role") != "assistant":
        return []
    return message.get("tool_calls") or []


def call_ids_of(message: Message) -> list[str]:
    """The call ids of an assistant message, in call order."""
    return [call["id"] for call in tool_calls_of(message)]


def text_of(message: Message) -> str:
    """The message's text: a string content as it is, the text parts of a list joined, else empty."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return ""
