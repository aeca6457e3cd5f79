"""An HTTP server that answers with the bytes a test gives, right or wrong, and notes what it was asked."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Asked:
    """One request; header names in lower case, all values of a name."""

    method: str
    target: str
    headers: dict[str, list[str]]
    body: bytes


Answering = Callable[[Asked], bytes | AsyncIterator[bytes]]


@dataclass
class RawServer:
    """`requests` in the order they came; `closed` is set when a client has closed a connection."""

    port: int = 0
    requests: list[Asked] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    connections: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def answer(body: bytes = b"{}", *headers: str, status: str = "200 OK") -> bytes:
    """Return a whole answer with its length."""
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@asynccontextmanager
async def raw_server(
    answering: Answering | bytes = b"", *, host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None
) -> AsyncIterator[RawServer]:
    """Serve until the block ends; bytes are the answer to every request, by default an empty JSON object."""
    server = RawServer()
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.connections += 1
        try:
            while (asked := await _read(reader)) is not None:
                server.requests.append(asked)
                server.asked.set()
                said = answering(asked) if callable(answering) else answering or answer()
                if isinstance(said, bytes):
                    writer.write(said)
                    await writer.drain()
                else:
                    watching = asyncio.get_running_loop().create_task(_until_end(reader, server.closed))
                    try:
                        async for part in said:
                            writer.write(part)
                            await writer.drain()
                            if server.closed.is_set():
                                break
                    finally:
                        watching.cancel()
                    break
            server.closed.set()
        except (ConnectionError, ssl.SSLError):
            server.closed.set()
        finally:
            writer.transport.abort()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    listening = await asyncio.start_server(begin, host, port, ssl=tls)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        for task in list(tasks):
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)


async def until_closed(server: RawServer) -> AsyncIterator[bytes]:
    """Say nothing until the client has gone."""
    await server.closed.wait()
    yield b""


async def _until_end(reader: asyncio.StreamReader, closed: asyncio.Event) -> None:
    with suppress(ConnectionError, ssl.SSLError):
        await reader.read()
    closed.set()


async def _read(reader: asyncio.StreamReader) -> Asked | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        return None
    first, *lines = head.rstrip("\r\n").split("\r\n")
    method, target, _ = first.split(" ", 2)
    headers: dict[str, list[str]] = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers.setdefault(name.lower(), []).append(value.strip())
    body = b""
    if "content-length" in headers:
        body = await reader.readexactly(int(headers["content-length"][0]))
    elif "chunked" in headers.get("transfer-encoding", []):
        while size := int(await reader.readline(), 16):
            body += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
    return Asked(method, target, headers, body)
