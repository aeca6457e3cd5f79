"""The little HTTP/1.1 that the offline server needs: keep-alive, bodies with a length or in chunks, one at a time."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

import structlog

log = structlog.get_logger(__name__)

MAX_HEAD_BYTES = 64 << 10
MAX_BODY_BYTES = 64 << 20
_HEAD_END = b"\r\n\r\n"
_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}


class BadRequest(Exception):
    """Bytes that are no request we can read; the connection ends with this status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


@dataclass(slots=True)
class HTTPRequest:
    """One request; header names in lower case."""

    method: str
    path: str
    headers: dict[bytes, bytes]
    body: bytes


@dataclass(frozen=True, slots=True)
class HTTPAnswer:
    """What to send back; `sent_bytes` fewer than the body's length cut the reply and the connection."""

    status: int
    body: bytes
    headers: bytes = b""
    content_type: bytes = b"application/json"
    sent_bytes: int | None = None


# Called with a request and the function that takes its answer, at once or later.
Handler = Callable[[HTTPRequest, Callable[[HTTPAnswer], None]], None]


class HTTPProtocol(asyncio.Protocol):
    """One connection."""

    __slots__ = ("_body_start", "_buffer", "_connections", "_handle", "_headers", "_is_busy", "_needed", "_transport")

    def __init__(self, handle: Handler, connections: "set[HTTPProtocol]") -> None:
        """`handle` gets each request in turn, the next when the last is answered; open ones are in `connections`."""
        self._handle, self._connections = handle, connections
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None
        self._is_busy = False
        self._headers: dict[bytes, bytes] = {}
        self._body_start = self._needed = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where to write."""
        self._transport = transport  # type: ignore[assignment]  # a server's transport reads and writes
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """An answer that is still due has nowhere to go."""
        self._transport = None
        self._connections.discard(self)

    def abort(self) -> None:
        """Drop the connection and what is still to be sent."""
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """Collect until a request is whole."""
        self._buffer += data
        if not self._is_busy:
            self._advance()

    def _advance(self) -> None:
        try:
            request = self._next_request()
        except BadRequest as problem:
            body = b'{"error":{"message":"%s"}}' % problem.message.encode()
            self._answer(HTTPAnswer(problem.status, body, b"Connection: close\r\n"), keeps_alive=False)
            return
        if request is not None:
            self._is_busy = True
            keeps_alive = request.headers.get(b"connection", b"").lower() != b"close"
            try:
                self._handle(request, lambda answer: self._answer(answer, keeps_alive=keeps_alive))
            except Exception:  # one request is fenced from the others; its client must not wait for ever
                log.exception("a request failed")
                body = b'{"error":{"message":"internal error"}}'
                self._answer(HTTPAnswer(500, body, b"Connection: close\r\n"), keeps_alive=False)

    def _next_request(self) -> HTTPRequest | None:
        if not self._body_start and not self._read_head():
            return None
        if self._needed < 0:
            whole = _unchunked(self._buffer, self._body_start)
            if whole is None:
                return None
            body, end = whole
        else:
            end = self._body_start + self._needed
            if len(self._buffer) < end:
                return None
            body = bytes(self._buffer[self._body_start : end])
        method, path, _ = bytes(self._buffer[: self._buffer.index(b"\r")]).decode("latin-1").split(" ", 2)
        del self._buffer[:end]
        self._body_start = 0
        return HTTPRequest(method, path.partition("?")[0], self._headers, body)

    def _read_head(self) -> bool:
        end = self._buffer.find(_HEAD_END)
        if end < 0:
            if len(self._buffer) > MAX_HEAD_BYTES:
                raise BadRequest(431, "the request's head is too large")
            return False
        request_line, *lines = bytes(self._buffer[:end]).split(b"\r\n")
        if request_line.count(b" ") != 2 or not request_line.endswith((b"HTTP/1.1", b"HTTP/1.0")):  # noqa: PLR2004
            raise BadRequest(400, "this is no HTTP/1.1 request")
        self._headers = {}
        for line in lines:
            name, _, value = line.partition(b":")
            self._headers[name.lower()] = value.strip()
        self._body_start = end + len(_HEAD_END)
        self._needed = self._body_length()
        if self._headers.get(b"expect", b"").lower() == b"100-continue" and self._transport is not None:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return True

    def _body_length(self) -> int:
        """The body's length; -1 when it comes in chunks."""
        if b"chunked" in self._headers.get(b"transfer-encoding", b"").lower():
            return -1
        length = self._headers.get(b"content-length", b"0")
        if not length.isdigit():
            raise BadRequest(400, "content-length is no number")
        if int(length) > MAX_BODY_BYTES:
            raise BadRequest(413, "the request's body is too large")
        return int(length)

    def _answer(self, answer: HTTPAnswer, *, keeps_alive: bool) -> None:
        self._is_busy = False
        if self._transport is None:
            return
        head = b"%sContent-Type: %s\r\nContent-Length: %d\r\n%s\r\n" % (
            _STATUS_LINES[answer.status],
            answer.content_type,
            len(answer.body),
            answer.headers,
        )
        self._transport.write(head + answer.body[: answer.sent_bytes])
        if not keeps_alive or answer.sent_bytes is not None:
            self._transport.close()
        elif self._buffer:
            self._advance()


def _unchunked(buffer: bytearray, start: int) -> tuple[bytes, int] | None:
    """The body of a chunked request and where it ends; None while some of it is missing."""
    body = bytearray()
    while True:
        line_end = buffer.find(b"\r\n", start)
        if line_end < 0:
            return None
        try:
            size = int(bytes(buffer[start:line_end]).partition(b";")[0], 16)
        except ValueError:
            raise BadRequest(400, "a chunk has no size") from None
        if size < 0 or len(body) + size > MAX_BODY_BYTES:
            raise BadRequest(413, "the request's body is too large")
        end = line_end + 2 + size
        if len(buffer) < end + 2:
            return None
        if not size:
            return bytes(body), end + 2
        body += buffer[line_end + 2 : end]
        start = end + 2
