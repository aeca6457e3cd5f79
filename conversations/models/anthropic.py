"""Anthropic's Messages API: a thin client; the history is kept in OpenAI's shapes and translated once a message."""

import time
from collections.abc import Callable
from functools import lru_cache

import orjson

from conversations.encoding import encode_json
from conversations.errors import MalformedReply, ModelError
from conversations.messages import JSONObject
from conversations.models.anthropic_replies import reply_of
from conversations.models.anthropic_stream import MessageStream
from conversations.models.exchange import Exchange
from conversations.models.model import Alternative, ModelReply, ModelRequest
from conversations.models.openai_compatible import random_call_id
from conversations.models.replies import read_completion
from conversations.models.settings import ModelSettings
from conversations.wire.anthropic import CACHED, Turns, tool_choice_of, tool_definitions_of
from conversations.wire.openai import call_ids_in

VERSION = "2026-10-21"
DEFAULT_MAX_TOKENS = 8192
ANSWER_TOOL = "respond"
"""The tool that a model is made to call where a request wants JSON: its input is the answer."""
_KEPT_TOOLS = 256
_OVERLOADED = 529
_STATUS_OF_TYPE = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 403,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": _OVERLOADED,
}


class AnthropicModel:
    """One model of one server; safe to use from many conversations at once."""

    def __init__(
        self,
        settings: ModelSettings,
        *,
        clock: Callable[[], float] = time.time,
        make_call_id: Callable[[], str] = random_call_id,
    ) -> None:
        """Connects to nothing yet."""
        self._settings, self._make_call_id = settings, make_call_id
        headers = {"anthropic-version": VERSION}
        if settings.api_key is not None:
            headers["Authorization"] = f"Bearer {settings.api_key.get_secret_value()}"
        path = "/messages" if settings.endpoint.rstrip("/").endswith("/v1") else "/v1/messages"
        self._exchange = Exchange(settings, path=path, headers=headers, clock=clock)
        self._prefix = _static_prefix(settings)

    def __repr__(self) -> str:
        """Names the place and nothing secret."""
        return f"<{type(self).__name__} {self._exchange.place}>"

    @property
    def model_id(self) -> str:
        """The model's name as the server knows it."""
        return self._settings.model_name

    async def open(self) -> None:
        """Take the process's shared client."""
        await self._exchange.open()

    async def close(self) -> None:
        """Give it back."""
        await self._exchange.close()

    async def ask(self, request: ModelRequest) -> ModelReply:
        """One try; a reply or a typed error. Several candidates are several requests: the API gives one at a time."""
        body = self.body_of(request)
        first = await self._ask_once(body, request)
        if request.candidates == 1 and not request.logprobs:
            return first
        replies = [first, *[await self._ask_once(body, request) for _ in range(request.candidates - 1)]]
        return ModelReply(
            message=first.message,
            finish_reason=first.finish_reason,
            input_tokens=sum(reply.input_tokens for reply in replies),
            output_tokens=sum(reply.output_tokens for reply in replies),
            model=first.model,
            alternatives=tuple(Alternative(reply.message, None, reply.finish_reason) for reply in replies),
        )

    def body_of(self, request: ModelRequest) -> bytes:
        """The request's JSON: the static parts first and the same bytes each time, marked for the server's cache."""
        turns = request.memory.setdefault("anthropic", Turns())
        turns.take(request.messages, request.failed_call_ids)
        mark = self._settings.prompt_cache
        parts = [_static_prefix(self._settings.saying(request.parameters)) if request.parameters else self._prefix]
        if request.response_format is not None:
            parts += b',"tools":[', encode_json(_answer_tool(request.response_format)), b"]"
            parts += b',"tool_choice":', orjson.dumps({"type": "tool", "name": ANSWER_TOOL})
        elif request.tools:
            parts += (
                b',"tools":',
                _encoded_tools(request.encoded_tools or encode_json(request.tools), request.encoded_extras, mark),
            )
            if (choice := tool_choice_of(request.tool_choice)) is not None:
                parts += b',"tool_choice":', orjson.dumps(choice)
        if any(turns.system):
            text = encode_json({"type": "text", "text": "\n\n".join(filter(None, turns.system))})
            parts += b',"system":[', text[:-1] + b"," + CACHED + b"}" if mark else text, b"]"
        parts += b',"messages":', turns.encoded(mark_cache=mark), b"}"
        return b"".join(parts)

    async def _ask_once(self, body: bytes, request: ModelRequest) -> ModelReply:
        if not self._settings.stream:
            data = await self._exchange.post(body, request.session_id)
            return self._read(data or b"", request)
        stream = MessageStream(self._exchange.place)
        data = await self._exchange.post(body, request.session_id, stream.feed)
        return self._read(data, request) if data is not None else self._reply(stream.finished(), stream.seen, request)

    def _read(self, data: memoryview | bytes, request: ModelRequest) -> ModelReply:
        try:
            answer = read_completion(data)
        except MalformedReply as error:
            raise self._exchange.malformed(error, data) from None
        return self._reply(answer, data, request)

    def _reply(self, answer: JSONObject, data: memoryview | bytes, request: ModelRequest) -> ModelReply:
        if answer.get("type") == "error":
            raise self._error_inside(answer, data)
        try:
            return reply_of(
                answer,
                model=self._settings.model_name,
                make_call_id=self._make_call_id,
                taken_ids=call_ids_in(request.messages),
                keep_reasoning=self._settings.reasoning == "keep",
                answer_tool=ANSWER_TOOL if request.response_format is not None else None,
            )
        except MalformedReply as error:
            raise self._exchange.malformed(error, data) from None

    def _error_inside(self, answer: JSONObject, data: memoryview | bytes) -> ModelError:
        """A stream that began well may still end in an error event."""
        error = answer.get("error")
        kind = error.get("type") if isinstance(error, dict) else None
        return self._exchange.error_of(_STATUS_OF_TYPE.get(str(kind), _OVERLOADED), bytes(data))


def _static_prefix(settings: ModelSettings) -> bytes:
    stop = [settings.stop] if isinstance(settings.stop, str) else settings.stop
    chosen = {
        "model": settings.model_name,
        "max_tokens": settings.max_tokens or DEFAULT_MAX_TOKENS,
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "stop_sequences": stop,
        "stream": settings.stream or None,
    }
    return orjson.dumps({key: value for key, value in chosen.items() if value is not None} | settings.extra)[:-1]


@lru_cache(maxsize=_KEPT_TOOLS)
def _encoded_tools(encoded: bytes, extras: bytes, mark_cache: bool) -> bytes:  # noqa: FBT001 - a key of the cache
    """A selection's tools, translated once for all conversations that offer them."""
    definitions = tool_definitions_of(orjson.loads(encoded), orjson.loads(extras or b"{}"))
    tools = [encode_json(tool) for tool in definitions]
    if mark_cache and tools and not any("cache_control" in each for each in definitions):
        tools[-1] = tools[-1][:-1] + b"," + CACHED + b"}"
    return b"[" + b",".join(tools) + b"]"


def _answer_tool(response_format: JSONObject) -> JSONObject:
    wanted = response_format.get("json_schema")
    schema = wanted.get("schema") if isinstance(wanted, dict) else None
    return {
        "name": ANSWER_TOOL,
        "description": "Give the answer: what you pass is taken as it is.",
        "input_schema": schema if isinstance(schema, dict) else {"type": "object"},
    }
