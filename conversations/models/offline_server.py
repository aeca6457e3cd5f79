"""The offline model as an OpenAI-compatible HTTP server, with faults on demand and a log of its requests."""

import asyncio
import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any, Self

import orjson

from conversations.messages import JSONObject
from conversations.models.http_protocol import HTTPAnswer, HTTPProtocol, HTTPRequest
from conversations.models.model import ModelReply, ModelRequest
from conversations.models.offline import compose_reply
from conversations.models.settings import OFFLINE_MODEL, OfflineSettings

_BACKLOG = 4096
_CREATED = 1_767_225_600  # a fixed time, so that the same request gets the same bytes
_MALFORMED_BODIES = (
    b'{"choices": [',
    b'{"choices": []}',
    b"<html>bad gateway</html>",
    b"null",
    b'{"choices": [{"message": 7}]}',
)


@dataclass(frozen=True, slots=True)
class Faults:
    """Shares of requests (0 to 1) that go wrong, each in its way."""

    rate_429: float = 0.0
    rate_500: float = 0.0
    rate_truncated: float = 0.0
    rate_malformed: float = 0.0
    retry_after_seconds: float = 1.0

    def draw(self, chance: Random) -> str:
        """Which fault strikes the next request; empty for none."""
        point = chance.random()
        shares = {
            "429": self.rate_429,
            "500": self.rate_500,
            "truncated": self.rate_truncated,
            "malformed": self.rate_malformed,
        }
        for name, share in shares.items():
            if point < share:
                return name
            point -= share
        return ""


@dataclass(slots=True)
class ServerStatistics:
    """What the server has seen so far."""

    requests: int = 0
    in_flight: int = 0
    most_in_flight: int = 0


class OfflineServer:
    """`async with OfflineServer() as server:` listens on `server.base_url` until the block ends."""

    def __init__(
        self,
        settings: OfflineSettings | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        faults: Faults | None = None,
        request_log: Path | None = None,
        api_key: str | None = None,
    ) -> None:
        """Port 0 takes a free one; `api_key` makes the server ask for that key."""
        self.settings, self.faults = settings or OfflineSettings(), faults or Faults()
        self.host, self.port = host, port
        self.statistics = ServerStatistics()
        self._api_key = api_key
        self._log_path, self._log_file = request_log, -1
        self._chance = Random(self.settings.seed)
        self._server: asyncio.Server | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def base_url(self) -> str:
        """What a client takes as its base URL."""
        return f"http://{self.host}:{self.port}/v1"

    async def __aenter__(self) -> Self:
        """Listen."""
        self._loop = asyncio.get_running_loop()
        if self._log_path is not None:
            self._log_file = os.open(self._log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._server = await self._loop.create_server(
            lambda: HTTPProtocol(self._handle), self.host, self.port, backlog=_BACKLOG
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop listening; connections end with the process or with their clients."""
        if self._server is not None:
            self._server.close()
        if self._log_file >= 0:
            os.close(self._log_file)
            self._log_file = -1

    def _handle(self, request: HTTPRequest, answer: Callable[[HTTPAnswer], None]) -> None:
        match request.method, request.path:
            case "POST", "/v1/chat/completions":
                self._chat(request, answer)
            case "GET", "/v1/models":
                model = {"id": OFFLINE_MODEL, "object": "model", "created": _CREATED, "owned_by": "parley"}
                answer(_json_answer(200, {"object": "list", "data": [model]}))
            case "GET", "/healthz":
                seen = self.statistics
                answer(_json_answer(200, {"status": "ok", "requests": seen.requests, "in_flight": seen.in_flight}))
            case _, path:
                answer(_refusal(404, f"nothing is served at {path}", "not_found"))

    def _chat(self, request: HTTPRequest, answer: Callable[[HTTPAnswer], None]) -> None:
        if self._api_key is not None and request.headers.get(b"authorization") != b"Bearer " + self._api_key.encode():
            answer(_refusal(401, "the API key is missing or wrong", "invalid_api_key"))
            return
        try:
            asked, model = _read_request(request.body, request.headers.get(b"x-session-id", b"").decode("latin-1"))
        except _Unreadable as problem:
            answer(_refusal(400, str(problem), "invalid_request_error"))
            return
        fault = self.faults.draw(self._chance)
        seen = self.statistics
        seen.requests += 1
        seen.in_flight += 1
        seen.most_in_flight = max(seen.most_in_flight, seen.in_flight)
        if self._log_file >= 0:
            os.write(self._log_file, _log_line(seen.requests, asked, model, fault))

        def respond() -> None:
            seen.in_flight -= 1
            answer(self._answer_of(asked, model, fault))

        assert self._loop is not None  # noqa: S101 - requests only come while the loop serves
        if self.settings.latency_ms:
            self._loop.call_later(self.settings.latency_ms / 1000, respond)
        else:
            respond()

    def _answer_of(self, asked: ModelRequest, model: str, fault: str) -> HTTPAnswer:
        match fault:
            case "429":
                wait = f"Retry-After: {self.faults.retry_after_seconds:g}\r\n".encode()
                return HTTPAnswer(429, _error_body("too many requests, slow down", "rate_limit_exceeded"), wait)
            case "500":
                return _refusal(500, "the offline model was told to fail", "server_error")
            case "malformed":
                return HTTPAnswer(200, self._chance.choice(_MALFORMED_BODIES))
        body = _completion(compose_reply(asked, self.settings, model=model))
        return HTTPAnswer(200, body, sent_bytes=len(body) // 2 if fault == "truncated" else None)


async def serve(
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    latency_ms: float = 0.0,
    turns: int | None = None,
    seed: int = 0,
    rate_429: float = 0.0,
    rate_500: float = 0.0,
    rate_truncated: float = 0.0,
    rate_malformed: float = 0.0,
    retry_after_seconds: float = 1.0,
    request_log: Path | None = None,
    api_key: str | None = None,
    ready: Callable[[int], None] | None = None,
) -> None:
    """Serve until cancelled; `ready` is called with the port once it listens."""
    server = OfflineServer(
        OfflineSettings(turns=turns, latency_ms=latency_ms, seed=seed),
        host=host,
        port=port,
        faults=Faults(rate_429, rate_500, rate_truncated, rate_malformed, retry_after_seconds),
        request_log=request_log,
        api_key=api_key,
    )
    async with server:
        if ready is not None:
            ready(server.port)
        await asyncio.Event().wait()


class _Unreadable(Exception):
    """A body that is no chat request; the message goes to the client."""


def _read_request(body: bytes, session_id: str) -> tuple[ModelRequest, str]:
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise _Unreadable(f"the body is not JSON: {error.msg}") from None
    messages = data.get("messages") if isinstance(data, dict) else None
    if not isinstance(messages, list) or not messages or not all(isinstance(message, dict) for message in messages):
        raise _Unreadable("messages: expected a list of at least one message")
    if data.get("stream"):
        raise _Unreadable("stream: the offline model answers in one piece")
    tools = data.get("tools")
    if tools is not None and not all(map(_is_tool, tools if isinstance(tools, list) else [None])):
        raise _Unreadable("tools: expected a list of functions with names")
    _check_history(messages)
    count = data.get("n") or 1
    if not isinstance(count, int) or not 1 <= count <= 128:  # noqa: PLR2004 - OpenAI's own limit
        raise _Unreadable("n: expected a number from 1 to 128")
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
                raise _Unreadable(f"messages: tool_call_id {call_id!r} answers no call of the message before it")
            open_ids.discard(call_id)
            continue
        if open_ids:
            raise _Unreadable(f"messages: tool calls without results: {', '.join(sorted(map(str, open_ids)))}")
        calls = message.get("tool_calls")
        if message.get("role") == "assistant" and calls:
            open_ids = {_checked_call(call) for call in calls}
    if open_ids:
        raise _Unreadable(f"messages: tool calls without results: {', '.join(sorted(map(str, open_ids)))}")


def _checked_call(call: Any) -> str:
    function = call.get("function") if isinstance(call, dict) else None
    if (
        not isinstance(function, dict)
        or not isinstance(function.get("name"), str)
        or not isinstance(call.get("id"), str)
    ):
        raise _Unreadable("messages: a tool call needs an id and a function with a name")
    return str(call["id"])


def _is_tool(tool: Any) -> bool:
    function = tool.get("function") if isinstance(tool, dict) else None
    return isinstance(function, dict) and isinstance(function.get("name"), str)


def _completion(reply: ModelReply) -> bytes:
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
    completion = {
        "id": f"chatcmpl-{call_id[5:] or hashlib.blake2b(str(reply.message).encode(), digest_size=12).hexdigest()}",
        "object": "chat.completion",
        "created": _CREATED,
        "model": reply.model,
        "choices": choices,
        "usage": {
            "prompt_tokens": reply.input_tokens,
            "completion_tokens": reply.output_tokens,
            "total_tokens": reply.input_tokens + reply.output_tokens,
        },
    }
    return orjson.dumps(completion)


def _log_line(number: int, asked: ModelRequest, model: str, fault: str) -> bytes:
    """One request: `turn` counts the model calls of its conversation, `digest` tells equal requests apart."""
    line: Mapping[str, Any] = {
        "number": number,
        "session_id": asked.session_id,
        "turn": 1 + sum(message.get("role") == "assistant" for message in asked.messages),
        "digest": hashlib.blake2b(orjson.dumps(asked.messages), digest_size=8).hexdigest(),
        "model": model,
        "tools": len(asked.tools or ()),
        "fault": fault,
    }
    return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)


def _json_answer(status: int, value: Any) -> HTTPAnswer:
    return HTTPAnswer(status, orjson.dumps(value))


def _refusal(status: int, message: str, code: str) -> HTTPAnswer:
    return HTTPAnswer(status, _error_body(message, code))


def _error_body(message: str, code: str) -> bytes:
    return orjson.dumps({"error": {"message": message, "type": code, "param": None, "code": code}})
