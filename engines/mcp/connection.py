"""One connection to a server: a client that one task owns from its opening to its end."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Annotated, Any, Protocol

import structlog
from mcp import CallToolRequest, Client, Implementation, MCPError
from mcp.client.session import IncomingMessage
from mcp.types import (
    CONNECTION_CLOSED,
    CallToolRequestParams,
    CallToolResult,
    InputRequiredResult,
    ToolListChangedNotification,
)
from pydantic import Discriminator, Tag, TypeAdapter

from engines.mcp.failures import ServerUnreachable, cause_of
from engines.plain import JSONObject

log = structlog.get_logger(__name__)

_CLOSING_SECONDS = 10.0
_NOTICING_SECONDS = 0.5
_CLOSED = (CONNECTION_CLOSED, "Connection closed")  # what mcp's client says when its streams have ended
_CLIENT = Implementation(name="parley", version="1")


class Link(Protocol):
    """How a server is reached: gives mcp's two streams, and says when they are gone for good."""

    @property
    def name(self) -> str:
        """What the server is called in messages: its URL without secrets, or its program."""

    @property
    def session_gone(self) -> str | None:
        """What the server said when it no longer knew this connection's session; None while it knows it."""

    @property
    def handle(self) -> JSONObject | None:
        """What another process needs to end the session on the server; None when closing the connection ends it."""

    def streams(self, lose: Callable[[str], None]) -> AbstractAsyncContextManager[Any]:
        """Connect; `lose(cause)` is called when the connection breaks by itself."""


def _result_kind(value: Any) -> str:
    kind = value.get("resultType") if isinstance(value, dict) else None
    return "input" if kind == "input_required" else "done"


_RESULT: TypeAdapter[CallToolResult | InputRequiredResult] = TypeAdapter(
    Annotated[
        Annotated[CallToolResult, Tag("done")] | Annotated[InputRequiredResult, Tag("input")],
        Discriminator(_result_kind),
    ]
)


def _quiet() -> None:
    """Silence the libraries below: they log session ids and whole messages, and all that goes wrong is told by us."""
    for name in ("mcp", "httpx2"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


class Connection:
    """A client and the task that owns it: mcp's scopes must be left by the task that entered them.

    Calls may come from any task. Nothing a server asks for (sampling, elicitation, roots) is granted: mcp's client
    answers such requests with an error as long as it is given no callbacks.
    """

    def __init__(self, link: Link, *, mode: str, tools_changed: Callable[[], None]) -> None:
        self.link = link
        self.lost: str | None = None
        """Why the connection is gone; None while it is not."""
        self._mode = mode
        self._tools_changed = tools_changed
        self._stop = asyncio.Event()
        self._ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._owner = asyncio.create_task(self._own(), name=f"mcp connection to {link.name}")

    @classmethod
    async def open(cls, link: Link, *, mode: str, seconds: float, tools_changed: Callable[[], None]) -> "Connection":
        """Connect and shake hands within `seconds`; ServerUnreachable says why not, and nothing is left open."""
        _quiet()
        connection = cls(link, mode=mode, tools_changed=tools_changed)
        try:
            async with asyncio.timeout(seconds):
                await asyncio.shield(connection._ready)
        except TimeoutError:
            await connection._abandon()
            raise ServerUnreachable(f"{link.name}: no answer within {seconds:g} seconds") from None
        except BaseException:
            await connection._abandon()
            raise
        return connection

    @property
    def client(self) -> Client:
        """The client inside; only while the connection is open."""
        return self._ready.result()

    async def call(self, name: str, arguments: JSONObject) -> CallToolResult | InputRequiredResult:
        """Call a tool; MCPError for what goes wrong. Cancelling it tells the server to stop.

        Not `Client.call_tool`: that one validates the answer with a slow validator, and lists the tools again to do so.
        """
        request = CallToolRequest(params=CallToolRequestParams(name=name, arguments=arguments))
        return await self.client.session.send_request(request, _RESULT)

    async def close(self) -> None:
        """End the connection and wait for its end; harmless when it has ended."""
        self._stop.set()
        await asyncio.wait({self._owner}, timeout=_CLOSING_SECONDS)
        if not self._owner.done():
            await self._abandon()

    def lose(self, cause: str) -> None:
        """Note that the connection broke; its owner then lets everything go."""
        if self.lost is None:
            self.lost = cause
        self._stop.set()

    async def end_noticed(self, error: MCPError) -> str | None:
        """Return why the connection is gone when that is what an error of a call comes from; else None."""
        if self.lost is None and (error.error.code, error.error.message) == _CLOSED:
            # Whoever waits for an answer hears of the end a moment before the owner knows its cause.
            await asyncio.wait({self._owner}, timeout=_NOTICING_SECONDS)
            self.lose("the connection closed")
        return self.lost

    async def _own(self) -> None:
        try:
            async with Client(
                self.link.streams(self.lose),
                mode=self._mode,
                cache=None,
                client_info=_CLIENT,
                message_handler=self._heard,
            ) as client:
                if not self._ready.done():
                    self._ready.set_result(client)
                await self._stop.wait()
        except asyncio.CancelledError:
            self._fail("it was given up")
            raise
        except BaseException as error:  # noqa: BLE001 - foreign code, exception groups too: told by `open` or `lost`
            self._fail(cause_of(error))
        finally:
            self.lose("it was closed")

    def _fail(self, cause: str) -> None:
        if self.lost is None:
            self.lost = cause
        if not self._ready.done():
            self._ready.set_exception(ServerUnreachable(f"{self.link.name}: {self.lost}"))
            self._ready.exception()  # Retrieved: whoever opened it may have been cancelled.

    async def _abandon(self) -> None:
        self._owner.cancel()
        await asyncio.wait({self._owner}, timeout=_CLOSING_SECONDS)

    async def _heard(self, message: IncomingMessage) -> None:
        """Note what a server says by itself: only a changed list of tools matters."""
        if isinstance(message, ToolListChangedNotification):
            self._tools_changed()
        elif isinstance(message, Exception):
            log.debug("an mcp connection reported trouble", server=self.link.name, cause=cause_of(message))
