"""HTTP/1.1 connections to one origin for requests that end when they are cancelled, and answers read as they come.

httpcore2's own pool looks at every connection for every request, and takes three times the CPU of this one.
"""

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import suppress
from typing import Any, cast

import h11
import httpcore2

from engines.network.addresses import AddressRules, Resolver, resolved
from engines.network.causes import connection_failure, failure_of, lost
from engines.network.failures import FailureKind, NetworkFailure
from engines.network.origins import Address, Origin

MOST_IDLE = 64
IDLE_SECONDS = 60.0
_MOST_HEADER_BYTES = 64 << 10
_CHUNK_BYTES = 64 << 10
_CLOSING_SECONDS = 1.0


class Http11Pool:
    """Hands requests to idle connections, the last used first, else to a new one to a checked address (rule S7)."""

    def __init__(
        self,
        origin: Origin,
        rules: AddressRules,
        resolver: Resolver,
        *,
        connect_seconds: float,
        ssl_context: ssl.SSLContext | None,
    ) -> None:
        self._origin = origin
        self._rules = rules
        self._resolver = resolver
        self._connect_seconds = connect_seconds
        self._ssl_context = ssl_context
        self._idle: deque[_Connection] = deque()
        self._open: set[_Connection] = set()

    async def handle_async_request(self, request: httpcore2.Request) -> httpcore2.Response:
        """Send a request and return its answer with the body still to be read; NetworkFailure when there is none."""
        timeouts = request.extensions.get("timeout", {})
        stream = cast("AsyncIterable[bytes]", request.stream)
        body = b"".join([part async for part in stream])
        connection = self._reusable() or await self._connected(timeouts.get("connect"))
        try:
            head = await connection.sent(request, body, read_seconds=timeouts.get("read"))
        except BaseException:
            self._drop(connection)  # Also when cancelled: closing is what tells the server to stop.
            raise
        return httpcore2.Response(head.status_code, headers=head.headers.raw_items(), content=_Body(self, connection))

    async def aclose(self) -> None:
        """Close every connection."""
        closing = list(self._open)
        for connection in closing:
            self._drop(connection)
        await asyncio.gather(*(connection.closed() for connection in closing))

    def give_back(self, connection: "_Connection") -> None:
        """Keep a connection whose answer was read to its end, if it may be used again."""
        if connection.is_ready_again() and len(self._idle) < MOST_IDLE:
            self._idle.append(connection)
        else:
            self._drop(connection)

    def _drop(self, connection: "_Connection") -> None:
        self._open.discard(connection)
        with suppress(ValueError):
            self._idle.remove(connection)
        connection.close()

    def _reusable(self) -> "_Connection | None":
        while self._idle:
            connection = self._idle.pop()
            if connection.is_alive():
                return connection
            self._drop(connection)
        return None

    async def _connected(self, seconds: float | None) -> "_Connection":
        """Connect to the first of the host's addresses that takes it."""
        bound = min(seconds or self._connect_seconds, self._connect_seconds)
        host = self._origin.authority
        try:
            async with asyncio.timeout(bound):
                addresses = await resolved(self._origin.host, self._origin.port, self._rules, self._resolver)
                return await self._first_that_takes_it(addresses)
        except TimeoutError:
            raise NetworkFailure(FailureKind.connect, f"{host}: no connection within {bound:g} s") from None
        except OSError as error:
            raise connection_failure(error, self._origin) from None

    async def _first_that_takes_it(self, addresses: tuple[Address, ...]) -> "_Connection":
        refusals: list[OSError] = []
        secured: dict[str, Any] = {}
        if self._ssl_context is not None:
            secured = {"ssl": self._ssl_context, "server_hostname": self._origin.host}
        for address in addresses:
            try:
                reader, writer = await asyncio.open_connection(str(address), self._origin.port, **secured)
            except ssl.SSLError:
                raise
            except OSError as error:
                refusals.append(error)
            else:
                connection = _Connection(reader, writer, self._origin)
                self._open.add(connection)
                return connection
        raise refusals[0]


class _Connection:
    """One connection: a request, its answer, the next request."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, origin: Origin) -> None:
        self._reader = reader
        self._writer = writer
        self._origin = origin
        self._protocol = h11.Connection(h11.CLIENT, max_incomplete_event_size=_MOST_HEADER_BYTES)
        self._read_seconds: float | None = None
        self._idle_since = 0.0

    async def sent(self, request: httpcore2.Request, body: bytes, *, read_seconds: float | None) -> h11.Response:
        """Send in one piece and read the answer's head."""
        self._read_seconds = read_seconds
        send = self._protocol.send
        try:
            head = h11.Request(method=request.method, target=request.url.target, headers=request.headers)
            parts = [send(head), send(h11.Data(data=body)) if body else b"", send(h11.EndOfMessage())]
            self._writer.write(b"".join(part for part in parts if part))
            if len(body) > _CHUNK_BYTES:
                await self._writer.drain()
        except h11.LocalProtocolError as error:
            message = f"{self._origin.authority}: the request cannot be sent: {error}"
            raise NetworkFailure(FailureKind.refused_request, message) from None
        except OSError as error:
            raise failure_of(error, self._origin) from None
        while True:
            event = await self.event()
            if isinstance(event, h11.Response):
                return event
            if not isinstance(event, h11.InformationalResponse):
                message = f"{self._origin.authority}: the answer begins without a status"
                raise NetworkFailure(FailureKind.protocol, message)

    async def event(self) -> Any:
        """Return the next part of the answer."""
        try:
            while (event := self._protocol.next_event()) is h11.NEED_DATA:
                async with asyncio.timeout(self._read_seconds):
                    self._protocol.receive_data(await self._reader.read(_CHUNK_BYTES))
        except h11.RemoteProtocolError as error:
            raise self._broken(error) from None
        except TimeoutError:
            message = f"{self._origin.authority}: nothing came within {self._read_seconds:g} s"
            raise NetworkFailure(FailureKind.timeout, message) from None
        except OSError as error:
            raise failure_of(error, self._origin) from None
        return event

    def is_ready_again(self) -> bool:
        """Whether the next request may go over this connection; makes it ready."""
        if self._protocol.our_state is not h11.DONE or self._protocol.their_state is not h11.DONE:
            return False
        self._protocol.start_next_cycle()
        self._idle_since = asyncio.get_running_loop().time()
        return self.is_alive()

    def is_alive(self) -> bool:
        """Whether an idle connection is still open and has said nothing unasked."""
        if self._writer.is_closing() or self._reader.at_eof() or self._protocol.trailing_data[0]:
            return False
        return asyncio.get_running_loop().time() - self._idle_since < IDLE_SECONDS

    def close(self) -> None:
        """Close at once, without TLS's leave-taking."""
        self._writer.transport.abort()

    async def closed(self) -> None:
        """Wait until it is closed."""
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(_CLOSING_SECONDS):
                await self._writer.wait_closed()

    def _broken(self, error: h11.RemoteProtocolError) -> NetworkFailure:
        host = self._origin.authority
        if self._reader.at_eof():
            return lost(self._origin)
        if error.error_status_hint == 431:  # noqa: PLR2004 - h11's word for headers without end
            return NetworkFailure(FailureKind.too_large, f"{host}: more than {_MOST_HEADER_BYTES:,} bytes of headers")
        return NetworkFailure(FailureKind.protocol, f"{host}: the answer cannot be read: {error}")


class _Body:
    """An answer's body, read as it comes; closing it before its end closes the connection."""

    def __init__(self, pool: Http11Pool, connection: _Connection) -> None:
        self._pool = pool
        self._connection: _Connection | None = connection

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while self._connection is not None:
            event = await self._connection.event()
            if isinstance(event, h11.Data):
                yield bytes(event.data)
            else:
                connection, self._connection = self._connection, None
                self._pool.give_back(connection)

    async def aclose(self) -> None:
        """Let the connection go."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._pool._drop(connection)  # noqa: SLF001 - the pool's own other half
