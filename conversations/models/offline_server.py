"""The offline model as an HTTP server in OpenAI's and Anthropic's words, with faults on demand and a request log."""

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

from conversations.models.http_protocol import HTTPAnswer, HTTPProtocol, HTTPRequest
from conversations.models.model import ModelRequest
from conversations.models.offline import compose_reply
from conversations.models.offline_families import ANTHROPIC_FAMILY, CREATED, EVENTS, JSON, OPENAI_FAMILY, Family
from conversations.models.offline_requests import UnreadableRequest
from conversations.models.settings import OFFLINE_MODEL, OfflineSettings

_BACKLOG = 4096
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
        self._connections: set[HTTPProtocol] = set()
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
            lambda: HTTPProtocol(self._handle, self._connections), self.host, self.port, backlog=_BACKLOG
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop listening and drop what is open."""
        if self._server is not None:
            self._server.close()
        for connection in tuple(self._connections):
            connection.abort()
        while self._connections:  # noqa: ASYNC110 - each leaves in the next round of the loop
            await asyncio.sleep(0)
        if self._log_file >= 0:
            os.close(self._log_file)
            self._log_file = -1

    def _handle(self, request: HTTPRequest, answer: Callable[[HTTPAnswer], None]) -> None:
        match request.method, request.path:
            case "POST", "/v1/chat/completions":
                self._chat(request, answer, OPENAI_FAMILY)
            case "POST", "/v1/messages":
                self._chat(request, answer, ANTHROPIC_FAMILY)
            case "GET", "/v1/models":
                model = {"id": OFFLINE_MODEL, "object": "model", "created": CREATED, "owned_by": "parley"}
                answer(_json_answer(200, {"object": "list", "data": [model]}))
            case "GET", "/healthz":
                seen = self.statistics
                answer(_json_answer(200, {"status": "ok", "requests": seen.requests, "in_flight": seen.in_flight}))
            case _, path:
                answer(OPENAI_FAMILY.refusal(404, f"nothing is served at {path}"))

    def _chat(self, request: HTTPRequest, answer: Callable[[HTTPAnswer], None], family: Family) -> None:
        if self._api_key is not None and request.headers.get(b"authorization") != b"Bearer " + self._api_key.encode():
            answer(family.refusal(401, "the API key is missing or wrong"))
            return
        try:
            session_id = request.headers.get(b"x-session-id", b"").decode("latin-1")
            asked, model, wants_stream = family.read(request.body, session_id)
        except UnreadableRequest as problem:
            answer(family.refusal(400, str(problem)))
            return
        fault = self.faults.draw(self._chance)
        seen = self.statistics
        seen.requests += 1
        seen.in_flight += 1
        seen.most_in_flight = max(seen.most_in_flight, seen.in_flight)
        if self._log_file >= 0:
            os.write(self._log_file, _log_line(seen.requests, asked, model, fault))

        # Now, so that a bug ends the connection and leaves nobody waiting.
        reply = self._answer_of(asked, model, fault, family, wants_stream=wants_stream)

        def respond() -> None:
            seen.in_flight -= 1
            answer(reply)

        assert self._loop is not None  # noqa: S101 - requests only come while the loop serves
        if self.settings.latency_ms:
            self._loop.call_later(self.settings.latency_ms / 1000, respond)
        else:
            respond()

    def _answer_of(
        self, asked: ModelRequest, model: str, fault: str, family: Family, *, wants_stream: bool
    ) -> HTTPAnswer:
        match fault:
            case "429":
                wait = f"Retry-After: {self.faults.retry_after_seconds:g}\r\n".encode()
                return family.refusal(429, "too many requests, slow down", wait)
            case "500":
                return family.refusal(500, "the offline model was told to fail")
            case "malformed":
                return HTTPAnswer(200, self._chance.choice(_MALFORMED_BODIES))
        reply = compose_reply(asked, self.settings, model=model)
        body, kind = (family.stream(reply), EVENTS) if wants_stream else (family.body(reply), JSON)
        sent_bytes = len(body) // 2 if fault == "truncated" else None
        return HTTPAnswer(200, body, content_type=kind, sent_bytes=sent_bytes)


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
