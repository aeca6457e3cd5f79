"""The two families of protocols that the offline server speaks: how each reads, answers, streams and refuses."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import orjson

from conversations.messages import JSONObject
from conversations.models.http_protocol import HTTPAnswer
from conversations.models.model import ModelReply, ModelRequest
from conversations.models.offline_anthropic import error_body, message_body, message_events, read_messages_request
from conversations.models.offline_requests import read_request

CREATED = 1_767_225_600  # a fixed time, so that the same request gets the same bytes
JSON = b"application/json"
EVENTS = b"text/event-stream"
_OPENAI_CODES: Mapping[int, str] = MappingProxyType(
    {400: "invalid_request_error", 401: "invalid_api_key", 404: "not_found", 429: "rate_limit_exceeded"}
)
_ANTHROPIC_TYPES: Mapping[int, str] = MappingProxyType(
    {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}
)


@dataclass(frozen=True, slots=True)
class Family:
    """One protocol."""

    read: Callable[[bytes, str], tuple[ModelRequest, str, bool]]
    body: Callable[[ModelReply], bytes]
    stream: Callable[[ModelReply], bytes]
    error: Callable[[int, str], bytes]

    def refusal(self, status: int, message: str, headers: bytes = b"") -> HTTPAnswer:
        """An error as this family words it."""
        return HTTPAnswer(status, self.error(status, message), headers)


def _completion(reply: ModelReply) -> JSONObject:
    alternatives = reply.alternatives
    messages: list[tuple[JSONObject, float | None]] = (
        [(each.message, each.logprob) for each in alternatives] if alternatives else [(reply.message, None)]
    )
    choices = [
        {
            "index": index,
            "message": message,
            "finish_reason": reply.finish_reason,
            "logprobs": None
            if logprob is None
            else {"content": [{"token": "", "bytes": [], "logprob": logprob, "top_logprobs": []}]},
        }
        for index, (message, logprob) in enumerate(messages)
    ]
    call_id = messages[0][0].get("tool_calls", [{}])[0].get("id", "")
    return {
        "id": f"chatcmpl-{call_id[5:] or hashlib.blake2b(str(reply.message).encode(), digest_size=12).hexdigest()}",
        "object": "chat.completion",
        "created": CREATED,
        "model": reply.model,
        "choices": choices,
        "usage": {
            "prompt_tokens": reply.input_tokens,
            "completion_tokens": reply.output_tokens,
            "total_tokens": reply.input_tokens + reply.output_tokens,
        },
    }


def _completion_chunks(completion: JSONObject) -> Iterable[JSONObject]:
    """The same as the events of a stream, texts and arguments cut in two, the usage last."""
    kept = {key: completion[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    for choice in completion["choices"]:
        for delta in _deltas(choice["message"]):
            piece = {"index": choice["index"], "delta": delta, "finish_reason": None}
            yield kept | {"choices": [piece]}
        last = {"index": choice["index"], "delta": {}, "finish_reason": choice["finish_reason"]}
        yield kept | {"choices": [last | {"logprobs": choice["logprobs"]}]}
    yield kept | {"choices": [], "usage": completion["usage"]}


def _deltas(message: JSONObject) -> Iterable[JSONObject]:
    yield {"role": "assistant", "content": ""}
    text = message.get("content") or ""
    for piece in (text[: len(text) // 2], text[len(text) // 2 :]):
        yield {"content": piece}
    for index, call in enumerate(message.get("tool_calls") or ()):
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        opening = {"id": call["id"], "type": "function", "function": {"name": name, "arguments": ""}}
        yield {"tool_calls": [{"index": index, **opening}]}
        for piece in (arguments[: len(arguments) // 2], arguments[len(arguments) // 2 :]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _events(events: Iterable[JSONObject], *, names: bool) -> bytes:
    lines = (
        (b"event: %b\n" % event["type"].encode() if names else b"") + b"data: " + orjson.dumps(event) + b"\n\n"
        for event in events
    )
    return b"".join(lines)


def _openai_error(status: int, message: str) -> bytes:
    code = _OPENAI_CODES.get(status, "server_error")
    return orjson.dumps({"error": {"message": message, "type": code, "param": None, "code": code}})


OPENAI_FAMILY = Family(
    read=read_request,
    body=lambda reply: orjson.dumps(_completion(reply)),
    stream=lambda reply: _events(_completion_chunks(_completion(reply)), names=False) + b"data: [DONE]\n\n",
    error=_openai_error,
)
ANTHROPIC_FAMILY = Family(
    read=read_messages_request,
    body=lambda reply: orjson.dumps(message_body(reply)),
    stream=lambda reply: _events(message_events(message_body(reply)), names=True),
    error=lambda status, message: error_body(message, _ANTHROPIC_TYPES.get(status, "api_error")),
)
