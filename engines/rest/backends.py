"""The servers that an engine asks, a client each: the engine's own with its credentials, others without any (S8)."""

from contextlib import AsyncExitStack

from engines.loaders.openapi.metadata import RestOperation
from engines.network.answers import Answer
from engines.network.http_client import HttpClient
from engines.network.origins import Origin
from engines.rest.operation import RestRequest
from engines.rest.settings import RestSettings


class Backend:
    """One server; `base_path` stands before every operation's path."""

    def __init__(self, client: HttpClient, base_path: str) -> None:
        self.base_path = base_path
        self._client = client

    async def ask(self, request: RestRequest, *, timeout_seconds: float | None = None) -> Answer:
        """Send a request and return its answer, of any status; NetworkFailure when there is none."""
        return await self._client.request(
            request.method,
            request.target,
            headers=request.headers.items(),
            content=request.content,
            timeout_seconds=timeout_seconds,
        )


class Backends:
    """Finds a tool's server. A host that only a document names has no right to private addresses (rule S7)."""

    def __init__(self, settings: RestSettings) -> None:
        self._settings = settings
        self._clients: dict[tuple[Origin, bool], HttpClient] = {}

    async def open(self) -> None:
        """Read what TLS needs, so that a wrong file is told before the first call; nothing is contacted."""
        async with AsyncExitStack() as opened:
            for client in self._clients.values():
                await client.open()
                opened.push_async_callback(client.close)
            opened.pop_all()

    async def close(self) -> None:
        """Close every connection, also after a client that raises."""
        async with AsyncExitStack() as closing:
            for client in self._clients.values():
                closing.push_async_callback(client.close)

    def own(self) -> Backend | None:
        """Return the server of the engine's `url`."""
        return None if self._settings.url is None else self._at(self._settings.url, is_configured=True)

    def of(self, described: RestOperation) -> Backend | None:
        """Return the server of an operation: the engine's `url` before the tool's own (rule D49); None for neither.

        OriginInvalid for a base URL that cannot be one.
        """
        if self._settings.url is not None or described.base_url is None:
            return self.own()
        return self._at(described.base_url, is_configured=described.base_from == "recipe")

    def _at(self, url: str, *, is_configured: bool) -> Backend:
        origin = Origin.of(url)
        base_path = origin.target(url).partition("?")[0]
        client = self._clients.get((origin, is_configured))
        if client is None:
            connections = self._settings.max_connections
            client = HttpClient(self._settings, origin, is_configured=is_configured, connections=connections)
            self._clients[origin, is_configured] = client
        return Backend(client, base_path)
