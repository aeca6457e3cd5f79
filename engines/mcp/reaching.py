"""How a server is reached by its settings: by a URL, where it is looked for, or by a command that starts it."""

import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

import httpx2
import structlog
from pydantic import SecretStr

from engines.mcp.child import Command
from engines.mcp.connection import Connection
from engines.mcp.endpoints import Endpoint
from engines.mcp.failures import ServerUnreachable, cause_of
from engines.mcp.http import HttpLink, end_session
from engines.mcp.settings import McpConnection
from engines.mcp.stdio import stdio_streams
from engines.network.mcp_http import mcp_http_transport
from engines.plain import JSONObject

log = structlog.get_logger(__name__)

FROM_ENVIRONMENT = "env:"


class Reach(Protocol):
    """Connects to one server, as often as it is asked to."""

    @property
    def name(self) -> str:
        """What the server is called in messages and in stored recipes; holds no secret."""

    @property
    def transport(self) -> str:
        """`http`, `sse` or `stdio`."""

    @property
    def leaves_behind(self) -> bool:
        """Whether a session stays on the server when the connection breaks."""

    async def connect(self, *, mode: str, tools_changed: Callable[[], None]) -> Connection:
        """Open a connection; ServerUnreachable says why not."""

    async def end(self, handle: JSONObject) -> None:
        """End a session that some process opened; raises when the server cannot be told."""

    async def close(self) -> None:
        """Give back what all connections share; they are closed before."""


class UrlReach:
    """A server behind a URL. What is found at the first of `endpoints` that speaks MCP is kept to from then on."""

    def __init__(self, settings: McpConnection, endpoints: tuple[Endpoint, ...], *, seconds: float) -> None:
        self._settings = settings
        self._endpoints = endpoints
        self._seconds = seconds
        self._transport: httpx2.AsyncBaseTransport | None = None

    @property
    def name(self) -> str:
        """The address without secrets."""
        return self._endpoints[0].name

    @property
    def transport(self) -> str:
        """What is spoken at the first address."""
        return self._endpoints[0].kind

    @property
    def leaves_behind(self) -> bool:
        """Whether a session stays on the server: over streamable HTTP it is told by an id alone."""
        return any(endpoint.kind == "http" for endpoint in self._endpoints)

    async def connect(self, *, mode: str, tools_changed: Callable[[], None]) -> Connection:
        """Try the addresses in turn, as long as anybody answers."""
        causes = []
        for endpoint in self._endpoints:
            link = self._link(endpoint)
            spoken = mode if endpoint.kind == "http" else "legacy"
            try:
                connection = await Connection.open(
                    link, mode=spoken, seconds=self._seconds, tools_changed=tools_changed
                )
            except ServerUnreachable as error:
                causes.append(f"{error} ({link.trouble})" if link.trouble and link.was_answered else str(error))
                if not link.was_answered:
                    break  # Nobody is there: the other paths of the same host need not be asked.
                continue
            self._endpoints = (endpoint,)
            return connection
        raise ServerUnreachable("; ".join(causes))

    async def end(self, handle: JSONObject) -> None:
        """Send the DELETE that ends a session."""
        session_id, at = handle.get("mcp_session_id"), handle.get("url")
        endpoint = next((each for each in self._endpoints if each.name == at), None)
        if not isinstance(session_id, str) or endpoint is None:
            return  # Not a session of this server: its address has changed since.
        try:
            await end_session(endpoint, self._shared(), session_id=session_id)
        except Exception as error:
            raise ServerUnreachable(f"{endpoint.name}: the session was not ended: {cause_of(error)}") from error

    async def close(self) -> None:
        """Close every HTTP connection."""
        if self._transport is not None:
            await self._transport.aclose()
            self._transport = None

    def _link(self, endpoint: Endpoint) -> HttpLink:
        shared = self._shared()
        return HttpLink(endpoint, shared, max_bytes=self._settings.max_response_bytes)

    def _shared(self) -> httpx2.AsyncBaseTransport:
        if self._transport is None:
            # Secrets are looked up now, where the connection is made, and not when the settings were read.
            headers = {name: SecretStr(looked_up(value)) for name, value in self._settings.headers.items()}
            settings = self._settings.model_copy(update={"headers": headers, "url": self._endpoints[0].url})
            is_configured = self._settings.url is not None
            self._transport = mcp_http_transport(settings, timeout=self._seconds, is_configured=is_configured)
        return self._transport


class StdioReach:
    """A server that is started here, once a connection."""

    transport = "stdio"
    leaves_behind = False

    def __init__(self, settings: McpConnection, *, seconds: float) -> None:
        assert settings.command is not None  # noqa: S101 - the settings' own check
        self._argv = (settings.command, *settings.args)
        self._environment = settings.environment
        self._max_bytes = settings.max_response_bytes
        self._seconds = seconds

    @property
    def name(self) -> str:
        """The program alone: arguments may hold secrets."""
        return f"stdio:{Command(self._argv).name}"

    async def connect(self, *, mode: str, tools_changed: Callable[[], None]) -> Connection:
        """Start the server."""
        environment = {name: looked_up(value) for name, value in self._environment.items()}
        link = _StdioLink(self.name, Command(self._argv, environment), self._max_bytes)
        return await Connection.open(link, mode=mode, seconds=self._seconds, tools_changed=tools_changed)

    async def end(self, handle: JSONObject) -> None:
        """Do nothing: a started server ends with the process that started it, which closes its stdin."""

    async def close(self) -> None:
        """Do nothing: each connection has its own process."""


class _StdioLink:
    """One start of the server."""

    session_gone: str | None = None
    handle: JSONObject | None = None

    def __init__(self, name: str, command: Command, max_bytes: int) -> None:
        self.name = name
        self._command = command
        self._max_bytes = max_bytes

    def streams(self, lose: Callable[[str], None]) -> AbstractAsyncContextManager[Any]:
        return stdio_streams(self._command, max_message_bytes=self._max_bytes, lose=lose)


def looked_up(value: SecretStr) -> str:
    """Return a value, or the variable's that it names by `env:NAME`; ServerUnreachable when that is not set."""
    text = value.get_secret_value()
    if not text.startswith(FROM_ENVIRONMENT):
        return text
    name = text.removeprefix(FROM_ENVIRONMENT)
    if name not in os.environ:
        raise ServerUnreachable(f"the variable {name} is not set; set it where the connection is made")
    return os.environ[name]
