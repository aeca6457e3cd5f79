"""Reads chat requests as strictly as the providers do, so that a history they would refuse is refused offline too."""

from typing import Any

import orjson

from conversations.messages import JSONObject
from conversations.models.model import ModelRequest
from conversations.models.settings import OFFLINE_MODEL


class UnreadableRequest(Exception):
    """A body that is no chat request; the message goes to the client."""


def read_request(body: bytes, session_id: str) -> tuple[ModelRequest, str]:
    """The request and the model's name in a body; UnreadableRequest says what a client did wrong."""
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise UnreadableRequest(f"the body is not JSON: {error.msg}") from None
    messages = data.get("messages") if isinstance(data, dict) else None
    if not isinstance(messages, list) or not messages or not all(isinstance(message, dict) for message in messages):
        raise UnreadableRequest("messages: expected a list of at least one message")
    if data.get("stream"):
        raise UnreadableRequest("stream: the offline model answers in one piece")
    tools = data.get("tools")
    if tools is not None and not all(map(_is_tool, tools if isinstance(tools, list) else [None])):
        raise UnreadableRequest("tools: expected a list of functions with names")
    _check_history(messages)
    count = data.get("n") or 1
    if not isinstance(count, int) or not 1 <= count <= 128:  # noqa: PLR2004 - OpenAI's own limit
        raise UnreadableRequest("n: expected a number from 1 to 128")
    asked = ModelRequest(
        messages,
        tools=tools,
        tool_choice=data.get("tool_choice"),
        response_format=data.get("response_format"),
        candidates=count,
        logprobs=bool(data.get("logprobs")),
        seed=data.get("seed"),
        session_id=session_id,
    )
    return asked, str(data.get("model") or OFFLINE_MODEL)


def _check_history(messages: list[JSONObject]) -> None:
    """What real providers refuse: a call without its result, a result without its call (decision 1)."""
    open_ids: set[Any] = set()
    for message in messages:
        if message.get("role") == "tool":
            call_id = message.get("tool_call_id")
            if call_id not in open_ids:
                raise UnreadableRequest(f"messages: tool_call_id {call_id!r} answers no call of the message before it")
            open_ids.discard(call_id)
            continue
        if open_ids:
            raise UnreadableRequest(f"messages: tool calls without results: {', '.join(sorted(map(str, open_ids)))}")
        calls = message.get("tool_calls")
        if message.get("role") == "assistant" and calls:
            open_ids = {_checked_call(call) for call in calls}
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
    return isinstance(function, dict) and isinstance(function.get("name"), str)
