"""Reads chat requests as strictly as the providers do, so that a history they would refuse is refused offline too."""

from typing import Any

import orjson

from conversations.messages import JSONObject
from conversations.models.model import ModelRequest
from conversations.models.replies import MAX_CHOICES
from conversations.models.settings import OFFLINE_MODEL


class UnreadableRequest(Exception):
    """A body that is no chat request; the message goes to the client."""


def read_request(body: bytes, session_id: str) -> tuple[ModelRequest, str, bool]:
    """The request, the model's name, whether a stream is wanted; UnreadableRequest says what a client did wrong."""
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise UnreadableRequest(f"the body is not JSON: {error.msg}") from None
    messages = data.get("messages") if isinstance(data, dict) else None
    if not isinstance(messages, list) or not messages or not all(isinstance(message, dict) for message in messages):
        raise UnreadableRequest("messages: expected a list of at least one message")
    _check_history(messages)
    _check_options(data)
    asked = ModelRequest(
        messages,
        tools=data.get("tools"),
        tool_choice=data.get("tool_choice"),
        response_format=data.get("response_format"),
        candidates=data.get("n") or 1,
        logprobs=bool(data.get("logprobs")),
        seed=data.get("seed"),
        session_id=session_id,
    )
    return asked, str(data.get("model") or OFFLINE_MODEL), bool(data.get("stream"))


def _check_options(data: JSONObject) -> None:
    tools = data.get("tools")
    if tools is not None and not all(map(_is_tool, tools if isinstance(tools, list) else [None])):
        raise UnreadableRequest("tools: expected a list of functions with names and, if any, parameters as an object")
    count = data.get("n")
    if count is not None and (not isinstance(count, int) or not 1 <= count <= MAX_CHOICES):
        raise UnreadableRequest(f"n: expected a number from 1 to {MAX_CHOICES}")
    if not isinstance(data.get("seed"), int | None):
        raise UnreadableRequest("seed: expected a whole number")
    choice = data.get("tool_choice")
    if isinstance(choice, dict):
        if not isinstance(choice.get("function"), dict):
            raise UnreadableRequest("tool_choice: expected the name of a function")
    elif choice is not None and (not isinstance(choice, str) or choice not in {"auto", "none", "required"}):
        raise UnreadableRequest('tool_choice: expected "auto", "none", "required" or a function')
    wanted = data.get("response_format")
    if not isinstance(wanted, dict | None) or not isinstance((wanted or {}).get("json_schema"), dict | None):
        raise UnreadableRequest("response_format: expected an object")


def _check_history(messages: list[JSONObject]) -> None:
    """What real providers refuse: a call without its result, a result without its call (decision 1)."""
    open_ids: set[Any] = set()
    for message in messages:
        if message.get("role") == "tool":
            call_id = message.get("tool_call_id")
            if not isinstance(call_id, str) or call_id not in open_ids:
                raise UnreadableRequest(f"messages: tool_call_id {call_id!r} answers no call of the message before it")
            open_ids.discard(call_id)
            continue
        if open_ids:
            raise UnreadableRequest(f"messages: tool calls without results: {', '.join(sorted(map(str, open_ids)))}")
        calls = message.get("tool_calls")
        if message.get("role") == "assistant" and calls:
            open_ids = {_checked_call(call) for call in (calls if isinstance(calls, list) else [calls])}
    if open_ids:
        raise UnreadableRequest(f"messages: tool calls without results: {', '.join(sorted(map(str, open_ids)))}")


def _checked_call(call: Any) -> str:
    function = call.get("function") if isinstance(call, dict) else None
    if (
        not isinstance(function, dict)
        or not isinstance(function.get("name"), str)
        or not isinstance(call.get("id"), str)
    ):
        raise UnreadableRequest("messages: a tool call needs an id and a function with a name")
    return str(call["id"])


def _is_tool(tool: Any) -> bool:
    function = tool.get("function") if isinstance(tool, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        return False
    return isinstance(function.get("parameters"), dict | None)
