"""The server's HTTP: pieces, pipelines, chunks and nonsense."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from conversations.models.http_protocol import HTTPAnswer, HTTPProtocol, HTTPRequest

Ask = Callable[[bytes], "asyncio.Future[bytes]"]
POST = b"POST /x?y=1 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nX-Session-ID: s\r\n\r\nabc"


class Echo:
    """Answers with what it was asked; `held` keeps answers back until they are let go."""

    def __init__(self) -> None:
        self.requests: list[HTTPRequest] = []
        self.held: list[Callable[[], None]] | None = None
        self.sent_bytes: int | None = None

    def handle(self, request: HTTPRequest, answer: Callable[[HTTPAnswer], None]) -> None:
        self.requests.append(request)
        reply = HTTPAnswer(200, request.method.encode() + b":" + request.body, sent_bytes=self.sent_bytes)
        if self.held is None:
            answer(reply)
        else:
            self.held.append(lambda: answer(reply))


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture
async def streams(echo: Echo) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    server = await asyncio.get_running_loop().create_server(lambda: HTTPProtocol(echo.handle, set()), "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.sockets[0].getsockname()[1])
    yield reader, writer
    writer.close()
    await writer.wait_closed()
    server.close()


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def answer_of(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    return head.split(b"\r\n")[0], await reader.readexactly(length)


async def test_a_request_is_read_and_the_connection_kept(echo: Echo, streams: Streams) -> None:
    reader, writer = streams
    for _ in range(2):
        writer.write(POST)
        assert await answer_of(reader) == (b"HTTP/1.1 200 OK", b"POST:abc")

    request = echo.requests[0]
    assert (request.method, request.path, request.body) == ("POST", "/x", b"abc")
    assert request.headers[b"x-session-id"] == b"s"


async def test_a_request_may_come_byte_by_byte(echo: Echo, streams: Streams) -> None:
    reader, writer = streams
    for place in range(len(POST)):
        writer.write(POST[place : place + 1])
        await writer.drain()

    assert await answer_of(reader) == (b"HTTP/1.1 200 OK", b"POST:abc")


async def test_pipelined_requests_are_answered_in_order(echo: Echo, streams: Streams) -> None:
    reader, writer = streams
    echo.held = []
    writer.write(POST + POST.replace(b"abc", b"def") + b"GET / HTTP/1.1\r\n\r\n")
    for expected in (b"POST:abc", b"POST:def", b"GET:"):
        while not echo.held:
            await asyncio.sleep(0)
        echo.held.pop()()
        assert (await answer_of(reader))[1] == expected


async def test_a_request_that_comes_while_another_is_answered_waits(echo: Echo, streams: Streams) -> None:
    reader, writer = streams
    echo.held = []
    writer.write(POST)
    while not echo.held:
        await asyncio.sleep(0)
    writer.write(POST.replace(b"abc", b"def"))
    for _ in range(20):  # rounds in which it would be read
        await asyncio.sleep(0)

    assert len(echo.requests) == 1
    echo.held.pop()()
    assert (await answer_of(reader))[1] == b"POST:abc"
    while not echo.held:
        await asyncio.sleep(0)
    echo.held.pop()()
    assert (await answer_of(reader))[1] == b"POST:def"


async def test_a_body_in_chunks(echo: Echo, streams: Streams) -> None:
    reader, writer = streams
    head = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    for part in (head, b"1\r\na\r\n", b"2;x=y\r\nbc", b"\r\n0\r\n", b"\r\n"):
        writer.write(part)
        await writer.drain()

    assert (await answer_of(reader))[1] == b"POST:abc"


async def test_100_continue_is_given(echo: Echo, streams: Streams) -> None:
    reader, writer = streams
    writer.write(b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n")
    assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    writer.write(b"z")

    assert (await answer_of(reader))[1] == b"POST:z"


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"hello\r\n\r\n", b"400"),
        (b"GET / HTTP/9.9\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", b"413"),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffffffff\r\n", b"413"),
        (b"GET / HTTP/1.1\r\n" + b"x" * 70_000, b"431"),
    ],
)
async def test_what_is_no_request_is_refused_and_the_connection_closed(
    streams: Streams, sent: bytes, status: bytes
) -> None:
    reader, writer = streams
    writer.write(sent)

    status_line, _ = await answer_of(reader)

    assert status_line.split(b" ")[1] == status
    assert await reader.read() == b""


async def test_connection_close_is_heeded(streams: Streams) -> None:
    reader, writer = streams
    writer.write(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n")

    assert (await answer_of(reader))[1] == b"GET:"
    assert await reader.read() == b""


async def test_f19_a_cut_answer_ends_the_connection(echo: Echo, streams: Streams) -> None:
    echo.sent_bytes = 4
    reader, writer = streams
    writer.write(POST)

    assert (await reader.read()).endswith(b"\r\n\r\nPOST")


async def test_an_answer_for_somebody_who_left_goes_nowhere(echo: Echo, streams: Streams) -> None:
    echo.held = []
    _, writer = streams
    writer.write(POST)
    while not echo.held:
        await asyncio.sleep(0)
    writer.transport.abort()
    await asyncio.sleep(0)

    echo.held.pop()()
