"""Connections whose requests end when they are cancelled, and whose answers are read as they come."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpcore2
import pytest

from engines.network.addresses import AddressRules, system_resolver
from engines.network.failures import AddressRefused, FailureKind, NetworkFailure
from engines.network.http11 import Http11Pool
from engines.network.origins import Origin

Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Peer:
    """A server that does to each connection what the test says, and notes what it saw."""

    script: Script
    connections: int = 0
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    port: int = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            await self.script(reader, writer)
        except ConnectionError:
            pass
        finally:
            writer.close()
            self.ended.set()


@asynccontextmanager
async def pool_to(script: Script, *, seconds: float = 5.0) -> AsyncIterator[tuple[Http11Pool, Peer]]:
    peer = Peer(script)
    server = await asyncio.start_server(peer.handle, "127.0.0.1", 0)
    peer.port = server.sockets[0].getsockname()[1]
    origin = Origin("http", "127.0.0.1", peer.port)
    rules = AddressRules.of(origin, (), is_configured=True)
    pool = Http11Pool(origin, rules, system_resolver, connect_seconds=seconds, ssl_context=None)
    yield pool, peer
    await pool.aclose()
    server.close()
    await server.wait_closed()


def request(peer: Peer, body: bytes = b"{}", **timeouts: float) -> httpcore2.Request:
    async def content() -> AsyncIterator[bytes]:
        yield body

    return httpcore2.Request(
        "POST",
        httpcore2.URL(scheme="http", host="127.0.0.1", port=peer.port, target="/mcp?a=1"),
        headers=[("Host", "127.0.0.1"), ("Content-Length", str(len(body)))],
        content=content(),
        extensions={"timeout": timeouts},
    )


async def read(response: httpcore2.Response) -> bytes:
    body = b"".join([chunk async for chunk in response.stream])  # type: ignore[union-attr]
    await response.aclose()
    return body


async def echoing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer each request with its own body, the first in chunks, the second with a length, and so on."""
    in_chunks = True
    while head := await reader.readuntil(b"\r\n\r\n"):
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        body = await reader.readexactly(length)
        if in_chunks:
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            writer.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
        else:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        in_chunks = not in_chunks


async def said(data: bytes, writer: asyncio.StreamWriter) -> None:
    writer.write(data)
    await writer.drain()


async def test_requests_share_a_connection_one_after_the_other() -> None:
    async with pool_to(echoing) as (pool, peer):
        for number in range(4):
            response = await pool.handle_async_request(request(peer, b"x" * (number * 100_000 + 1)))
            assert response.status == 200
            assert await read(response) == b"x" * (number * 100_000 + 1)
        assert peer.connections == 1
        first = await pool.handle_async_request(request(peer, b"one"))
        second = await pool.handle_async_request(request(peer, b"two"))
        assert (await read(second), await read(first)) == (b"two", b"one")
        assert peer.connections == 2


async def test_a_cancelled_request_closes_its_connection_at_once() -> None:
    asked = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n{}")
        asked.set()
        assert await reader.read() == b""

    async with pool_to(silent) as (pool, peer):
        sending = asyncio.create_task(pool.handle_async_request(request(peer)))
        await asked.wait()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        async with asyncio.timeout(5):
            await peer.ended.wait()


async def test_a_body_that_is_closed_before_its_end_closes_the_connection() -> None:
    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n{}")
        await said(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n", writer)
        assert await reader.read() == b""

    async with pool_to(endless) as (pool, peer):
        response = await pool.handle_async_request(request(peer))
        async for chunk in response.stream:  # type: ignore[union-attr]
            assert chunk == b"one"
            break
        await response.aclose()
        async with asyncio.timeout(5):
            await peer.ended.wait()


async def test_a_connection_that_the_server_closed_is_not_used_again() -> None:
    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n{}")
        await said(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", writer)

    async with pool_to(once) as (pool, peer):
        for number in (1, 2):
            peer.ended.clear()
            assert await read(await pool.handle_async_request(request(peer))) == b"hi"
            await peer.ended.wait()
            async with asyncio.timeout(5):
                while pool._idle and pool._idle[-1].is_alive():
                    await asyncio.sleep(0.001)
            assert peer.connections == number


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (b"", FailureKind.lost),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", FailureKind.lost),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhal", FailureKind.lost),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", FailureKind.protocol),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx", FailureKind.protocol),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", FailureKind.protocol),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 200_000, FailureKind.too_large),
    ],
)
async def test_f24_an_answer_that_is_none_is_told_by_its_kind(answer: bytes, kind: FailureKind) -> None:
    async def saying(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n{}")
        await said(answer, writer)

    async with pool_to(saying) as (pool, peer):
        with pytest.raises(NetworkFailure) as caught:
            await read(await pool.handle_async_request(request(peer)))
        assert caught.value.kind is kind
        assert str(peer.port) in caught.value.message
        assert not pool._idle


async def test_a_wait_between_two_pieces_has_a_bound_when_it_is_given_one() -> None:
    async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    async with pool_to(silent) as (pool, peer):
        with pytest.raises(NetworkFailure, match="nothing came within") as caught:
            await pool.handle_async_request(request(peer, read=0.05))
        assert caught.value.kind is FailureKind.timeout


async def test_nobody_listening_and_refused_addresses_are_told_before_anything_is_sent() -> None:
    async with pool_to(echoing) as (_, peer):
        pass
    origin = Origin("http", "127.0.0.1", peer.port)
    configured = AddressRules.of(origin, (), is_configured=True)
    pool = Http11Pool(origin, configured, system_resolver, connect_seconds=5, ssl_context=None)
    with pytest.raises(NetworkFailure, match=r"no connection: .*is the server up") as caught:
        await pool.handle_async_request(request(peer))
    assert caught.value.kind is FailureKind.connect
    unnamed = AddressRules.of(origin, (), is_configured=False)
    pool = Http11Pool(origin, unnamed, system_resolver, connect_seconds=5, ssl_context=None)
    with pytest.raises(AddressRefused):
        await pool.handle_async_request(request(peer))


async def test_sec_s7_a_name_is_resolved_and_checked_for_every_connection() -> None:
    answers = iter([["127.0.0.1"], ["10.0.0.1"]])

    async def resolver(_host: str, _port: int) -> list[str]:
        return next(answers)

    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n{}")
        await said(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi", writer)

    async with pool_to(once) as (_, peer):
        origin = Origin("http", "rebinding.example", peer.port)
        rules = AddressRules.of(origin, ("127.0.0.1",), is_configured=True)
        pool = Http11Pool(origin, rules, resolver, connect_seconds=5, ssl_context=None)
        assert await read(await pool.handle_async_request(request(peer))) == b"hi"
        with pytest.raises(AddressRefused, match=r"10\.0\.0\.1"):
            await pool.handle_async_request(request(peer))
        await pool.aclose()
