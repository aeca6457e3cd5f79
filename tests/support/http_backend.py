"""An HTTP/1.1 server for tests, in the test's own loop: it keeps what came over the wire and answers as it is told."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit


@dataclass
class Received:
    """One request, `target` as it stood in the request line."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def raw_path(self) -> str:
        """The path, still encoded."""
        return self.target.partition("?")[0]

    @property
    def path(self) -> str:
        return unquote(self.raw_path)

    @cached_property
    def query(self) -> list[tuple[str, str]]:
        return parse_qsl(urlsplit(self.target).query, keep_blank_values=True)

    def header(self, name: str) -> str | None:
        """The header's one value; None when it was not sent."""
        found = [value for each, value in self.headers if each.lower() == name.lower()]
        assert len(found) <= 1, found
        return found[0] if found else None

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Reply:
    """What to answer: JSON unless the body is bytes."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        data = self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()
        headers = {"content-type": "application/json", "content-length": str(len(data)), **self.headers}
        lines = [f"HTTP/1.1 {self.status} Said", *(f"{name}: {value}" for name, value in headers.items())]
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


Answer = Callable[[Received], Awaitable[Reply | bytes | None]]
"""Bytes go out as they are, then the connection ends; None ends it without a word."""


async def echoed(request: Received) -> Reply:
    """Answer with what was asked."""
    return Reply(
        {"method": request.method, "path": request.path, "query": request.query, "body": request.body.decode()}
    )


@dataclass
class HttpBackend:
    """What the server saw, in order."""

    answer: Answer = echoed
    port: int = 0
    received: list[Received] = field(default_factory=list)
    connections: int = 0
    _open: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def last(self) -> Received:
        return self.received[-1]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection's requests until it ends."""
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        self.connections += 1
        try:
            while (request := await _request(reader)) is not None:
                self.received.append(request)
                reply = await self.answer(request)
                if isinstance(reply, Reply):
                    writer.write(reply.to_bytes())
                    await writer.drain()
                    continue
                if reply is not None:
                    writer.write(reply)
                    await writer.drain()
                break
        except (ConnectionError, asyncio.CancelledError):
            pass  # the client, or the test, is done
        finally:
            self._open.discard(task)
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def end(self) -> None:
        """End all connections."""
        for task in list(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)


async def _request(reader: asyncio.StreamReader) -> Received | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.rstrip("\r\n").split("\r\n")
    method, target, _ = first.split(" ")
    headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]
    length = next((int(value) for name, value in headers if name.lower() == "content-length"), 0)
    return Received(method, target, headers, await reader.readexactly(length))


@asynccontextmanager
async def http_backend(answer: Answer = echoed) -> AsyncIterator[HttpBackend]:
    """Serve on a free port of the loopback for the block."""
    backend = HttpBackend(answer)
    server = await asyncio.start_server(backend.serve, "127.0.0.1", 0)
    backend.port = server.sockets[0].getsockname()[1]
    try:
        yield backend
    finally:
        server.close()
        await backend.end()
        await server.wait_closed()
