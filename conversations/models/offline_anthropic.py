"""The offline model in Anthropic's words: its requests read as strictly as the provider does, its replies as blocks."""

from typing import Any

import orjson

from conversations.messages import JSONObject, Message, assistant, system, text_of, tool_call, tool_calls_of, user
from conversations.models.model import ModelReply, ModelRequest
from conversations.models.offline_requests import UnreadableRequest
from conversations.models.settings import OFFLINE_MODEL

_STOP_REASONS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}


def read_messages_request(body: bytes, session_id: str) -> tuple[ModelRequest, str, bool]:
    """The request in our shapes, the model's name, whether a stream is wanted; UnreadableRequest says what is wrong."""
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise UnreadableRequest(f"the body is not JSON: {error.msg}") from None
    if not isinstance(data, dict) or not isinstance(data.get("messages"), list) or not data["messages"]:
        raise UnreadableRequest("messages: Field required")
    if not isinstance(data.get("max_tokens"), int) or data["max_tokens"] < 1:
        raise UnreadableRequest("max_tokens: Field required")
    _check_turns(data["messages"])
    messages = [system(text)] if (text := _system_text(data.get("system"))) else []
    for turn in data["messages"]:
        messages += _messages_of(turn)
    tools = [_function(tool) for tool in data.get("tools") or ()] or None
    asked = ModelRequest(messages, tools=tools, tool_choice=_choice(data.get("tool_choice")), session_id=session_id)
    return asked, str(data.get("model") or OFFLINE_MODEL), bool(data.get("stream"))


def message_body(reply: ModelReply) -> JSONObject:
    """A reply as the API's `message` object."""
    said = text_of(reply.message)
    content: list[JSONObject] = [{"type": "text", "text": said}] if said else []
    for call in tool_calls_of(reply.message):
        arguments = orjson.loads(call["function"]["arguments"])
        content.append({"type": "tool_use", "id": call["id"], "name": call["function"]["name"], "input": arguments})
    return {
        "id": "msg_offline",
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": content,
        "stop_reason": _STOP_REASONS.get(reply.finish_reason, "end_turn"),
        "stop_sequence": None,
        "usage": {"input_tokens": reply.input_tokens, "output_tokens": reply.output_tokens},
    }


def message_events(message: JSONObject) -> list[JSONObject]:
    """The same as the events of a stream, texts and arguments cut in two."""
    usage = message["usage"]
    opening = message | {"content": [], "stop_reason": None, "usage": usage | {"output_tokens": 1}}
    events: list[JSONObject] = [{"type": "message_start", "message": opening}, {"type": "ping"}]
    for index, block in enumerate(message["content"]):
        is_text = block["type"] == "text"
        text = block["text"] if is_text else orjson.dumps(block["input"]).decode()
        nothing: JSONObject = {"text": ""} if is_text else {"input": {}}
        empty = block | nothing
        kind, key = ("text_delta", "text") if is_text else ("input_json_delta", "partial_json")
        half = len(text) // 2
        events.append({"type": "content_block_start", "index": index, "content_block": empty})
        events += [
            {"type": "content_block_delta", "index": index, "delta": {"type": kind, key: piece}}
            for piece in (text[:half], text[half:])
        ]
        events.append({"type": "content_block_stop", "index": index})
    ending = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    events.append({"type": "message_delta", "delta": ending, "usage": {"output_tokens": usage["output_tokens"]}})
    return [*events, {"type": "message_stop"}]


def error_body(message: str, kind: str) -> bytes:
    """An error as the API words it."""
    return orjson.dumps({"type": "error", "error": {"type": kind, "message": message}})


def _check_turns(turns: list[Any]) -> None:
    """Roles begin with the user; each `tool_use` has its `tool_result` in the very next turn, before any text."""
    waiting: list[str] = []
    for number, turn in enumerate(turns):
        role = turn.get("role") if isinstance(turn, dict) else None
        if role not in {"user", "assistant"} or (number == 0 and role != "user"):
            raise UnreadableRequest(f"messages.{number}: roles are user and assistant, and the first is user")
        blocks = _blocks(turn, number)
        results = [block.get("tool_use_id") for block in blocks if block.get("type") == "tool_result"]
        if sorted(map(str, results)) != sorted(waiting):
            raise UnreadableRequest(
                f"messages.{number}: `tool_use` ids {waiting} and `tool_result` ids {results} differ"
            )
        if any(block.get("type") != "tool_result" for block in blocks[: len(results)]):
            raise UnreadableRequest(f"messages.{number}: `tool_result` blocks must come first in the content")
        waiting = [str(block.get("id")) for block in blocks if block.get("type") == "tool_use"]
        if len(set(waiting)) < len(waiting):
            raise UnreadableRequest(f"messages.{number}: `tool_use` ids must be unique")
    if waiting:
        raise UnreadableRequest(f"messages: `tool_use` ids without `tool_result`: {waiting}")


def _blocks(turn: JSONObject, number: int) -> list[JSONObject]:
    content = turn.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list) or not content or not all(isinstance(block, dict) for block in content):
        raise UnreadableRequest(f"messages.{number}.content: expected text or a list of at least one block")
    for block in content:
        if block.get("type") == "text" and not str(block.get("text") or "").strip():
            raise UnreadableRequest(f"messages.{number}: text content blocks must be non-empty")
        if block.get("type") == "tool_use" and not isinstance(block.get("input"), dict):
            raise UnreadableRequest(f"messages.{number}: tool_use.input: expected an object")
    return content


def _messages_of(turn: JSONObject) -> list[Message]:
    blocks = _blocks(turn, 0)
    text = "".join(block["text"] for block in blocks if block.get("type") == "text")
    if turn["role"] == "assistant":
        calls = [
            tool_call(block["id"], block["name"], orjson.dumps(block["input"]).decode())
            for block in blocks
            if block.get("type") == "tool_use"
        ]
        return [assistant(text or None, calls)]
    results: list[Message] = [
        {"role": "tool", "tool_call_id": block["tool_use_id"], "content": text_of(block)}
        for block in blocks
        if block.get("type") == "tool_result"
    ]
    return [*results, user(text)] if text else results


def _system_text(given: Any) -> str:
    return given if isinstance(given, str) else "".join(str(block.get("text", "")) for block in given or ())


def _function(tool: Any) -> JSONObject:
    if (
        not isinstance(tool, dict)
        or not isinstance(tool.get("name"), str)
        or not isinstance(tool.get("input_schema"), dict)
    ):
        raise UnreadableRequest("tools: expected names and input_schema objects")
    function = {"name": tool["name"], "description": tool.get("description", ""), "parameters": tool["input_schema"]}
    return {"type": "function", "function": function}


def _choice(choice: Any) -> Any:
    kind = choice.get("type") if isinstance(choice, dict) else None
    if kind == "tool":
        return {"type": "function", "function": {"name": choice["name"]}}
    return {"auto": "auto", "none": "none", "any": "required"}.get(str(kind))
