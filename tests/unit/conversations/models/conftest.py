"""A server that answers with the bytes it is told, and models that speak to it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest

from conversations.messages import user
from conversations.models.model import ModelRequest
from conversations.models.openai_compatible import OpenAICompatibleModel
from conversations.models.settings import ModelSettings

Answer = bytes | Callable[[asyncio.StreamWriter], Awaitable[None]]
GOOD = {
    "id": "x", "object": "chat.completion", "created": 1, "model": "served", "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}
    ], "usage": {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15},
}  # fmt: skip


def http(status: int, body: Any, *headers: str) -> bytes:
    """Return an HTTP answer; a body that is no bytes is sent as JSON."""
    data = body if isinstance(body, bytes) else orjson.dumps(body)
    lines = [f"HTTP/1.1 {status} Some Reason", f"Content-Length: {len(data)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


@dataclass
class ScriptedServer:
    """Answers each request with the next of `answers`, the last one for ever; keeps what it was sent."""

    answers: list[Answer] = field(default_factory=lambda: [http(200, GOOD)])
    heads: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    connections: int = 0
    port: int = 0
    open: dict[asyncio.Task[Any], asyncio.StreamWriter] = field(default_factory=dict)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self.open[task] = writer
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                length = next(
                    int(line.split(":")[1]) for line in head.split("\r\n") if line.lower().startswith("content-length")
                )
                body = await reader.readexactly(length)
                self.heads.append(head)
                self.bodies.append(body)
                answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
                if isinstance(answer, bytes):
                    writer.write(answer)
                    await writer.drain()
                else:
                    await answer(writer)
                    break
            writer.close()

    async def close(self) -> None:
        """Drop all connections and wait until they are gone."""
        for task, writer in self.open.items():
            writer.transport.abort()
            task.cancel()
        await asyncio.wait(self.open or [asyncio.ensure_future(asyncio.sleep(0))])
        await asyncio.gather(*(writer.wait_closed() for writer in self.open.values()), return_exceptions=True)

    def header(self, name: str, request: int = -1) -> str | None:
        """Return a header of a request that came."""
        for line in self.heads[request].split("\r\n"):
            key, _, value = line.partition(":")
            if key.lower() == name.lower():
                return value.strip()
        return None


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    scripted = ScriptedServer()
    listening = await asyncio.start_server(scripted.serve, "127.0.0.1", 0)
    scripted.port = listening.sockets[0].getsockname()[1]
    yield scripted
    listening.close()
    await scripted.close()


@pytest.fixture
async def connect(server: ScriptedServer) -> AsyncIterator[Callable[..., Awaitable[OpenAICompatibleModel]]]:
    """Make an open model of the scripted server with these settings."""
    models: list[OpenAICompatibleModel] = []

    async def connected(**settings: Any) -> OpenAICompatibleModel:
        given = {"provider": "openai", "model": "m", "base_url": server.base_url, "timeout_seconds": 20.0} | settings
        model = OpenAICompatibleModel(ModelSettings.model_validate(given))
        await model.open()
        models.append(model)
        return model

    yield connected
    for model in models:
        await model.close()


@pytest.fixture
def question() -> ModelRequest:
    return ModelRequest([user("Hi")], session_id="conversation-1", seed=7)
