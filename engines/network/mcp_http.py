"""HTTP for mcp's transports: checked addresses, credentials bound to one origin, no redirects, bounded bodies.

Not over pyreqwest: mcp cancels a call by closing its connection, and a request of pyreqwest that is cancelled goes on
until it is answered.
"""

from collections.abc import AsyncIterator
from functools import lru_cache
from typing import Any
from urllib.parse import quote

import httpcore2
import httpx2

from engines.network.addresses import AddressRules, Resolver, check_as_written, system_resolver
from engines.network.answers import check_announced_length, checked_headers
from engines.network.causes import failure_of
from engines.network.connection import ConnectionSettings
from engines.network.failures import FailureKind, NetworkFailure
from engines.network.headers import header_problem
from engines.network.http11 import Http11Pool
from engines.network.origins import Origin, OriginInvalid
from engines.network.proxies import environment_proxy
from engines.network.tls import ssl_context, warn_when_unverified

# Each conversation of a stateful server keeps one connection open for what the server sends unasked.
_CONNECTIONS = 10_000
_IDLE_CONNECTIONS = 64
_IDLE_SECONDS = 60.0
_EVENTS = "text/event-stream"


class McpRequestFailed(NetworkFailure, httpx2.TransportError):
    """A request without a usable answer, as mcp's client expects to catch it and as this floor classifies it."""

    def __init__(self, failure: NetworkFailure) -> None:
        NetworkFailure.__init__(self, failure.kind, failure.message)
        self._request = None


def mcp_http_client(
    settings: ConnectionSettings, *, timeout: float, resolver: Resolver = system_resolver
) -> httpx2.AsyncClient:
    """Return a client for the origin of `settings.url`; to be closed by the caller. Reads TLS files (blocking).

    `timeout` (seconds) bounds connecting and writing; how long an answer may take is the caller's to say.
    """
    return httpx2.AsyncClient(
        transport=mcp_http_transport(settings, timeout=timeout, resolver=resolver),
        timeout=httpx2.Timeout(None),
        follow_redirects=False,
        trust_env=False,
    )


def mcp_http_transport(
    settings: ConnectionSettings, *, timeout: float, is_configured: bool = True, resolver: Resolver = system_resolver
) -> httpx2.AsyncBaseTransport:
    """Return the transport alone, for clients that share their connections.

    `is_configured` is False when `settings.url` was not written by the operator: it then has no right to private
    addresses. ConfigurationInvalid names a TLS file that cannot be used.
    """
    return _GuardedTransport(settings, timeout=timeout, is_configured=is_configured, resolver=resolver)


class _GuardedTransport(httpx2.AsyncBaseTransport):
    """One origin's connections."""

    def __init__(
        self, settings: ConnectionSettings, *, timeout: float, is_configured: bool, resolver: Resolver
    ) -> None:
        if settings.url is None:
            raise OriginInvalid("there is no url to connect to; give one")
        self._origin = Origin.of(settings.url)
        self._max_bytes = settings.max_response_bytes
        self._timeout = timeout
        self._identity = settings.credential_headers
        key = settings.api_key
        self._query = (
            f"{quote(key.name, safe='')}={quote(key.value.get_secret_value(), safe='')}"
            if key is not None and key.location == "query"
            else ""
        )
        self._targets: dict[str, str] = {}
        warn_when_unverified(settings, self._origin)
        self._pool = _pool(self._origin, settings, timeout=timeout, is_configured=is_configured, resolver=resolver)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send to the one origin; McpRequestFailed for everything that is no answer."""
        try:
            asked = self._asked(request)
            answer = await self._pool.handle_async_request(asked)
            stream = _Body(answer.stream, self._origin)
            response = httpx2.Response(answer.status, headers=answer.headers, stream=stream)
            try:
                stream.max_bytes = self._bound(response)
            except NetworkFailure:
                await response.aclose()
                raise
            return response
        except NetworkFailure as failure:
            raise McpRequestFailed(failure) from None
        except _FOREIGN as error:
            raise McpRequestFailed(failure_of(error, self._origin)) from None

    async def aclose(self) -> None:
        """Close every connection."""
        await self._pool.aclose()

    def _asked(self, request: httpx2.Request) -> httpcore2.Request:
        target = self._target_of(str(request.url))
        headers = request.headers
        for name, value in self._identity:
            headers[name] = value
        for name, value in headers.multi_items():
            if name not in _SET_BY_HTTPX and (problem := _header_problem(name, value)):
                raise NetworkFailure(FailureKind.refused_request, f"{self._origin.authority}: {problem}")
        headers["accept-encoding"] = "identity"  # an event stream cannot be unpacked within bounds
        given = request.extensions.get("timeout", {})
        usual = {"connect": self._timeout, "write": self._timeout, "pool": self._timeout}
        timeouts = usual | {name: seconds for name, seconds in given.items() if seconds is not None}
        return httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(
                scheme=self._origin.scheme, host=self._origin.host, port=self._origin.port, target=target
            ),
            headers=headers.raw,
            content=request.stream,
            extensions={"timeout": timeouts},
        )

    def _target_of(self, url: str) -> str:
        """Return path and query of a URL of the one origin; nearly all requests have the same one."""
        target = self._targets.get(url)
        if target is None:
            if (found := Origin.of(url)) != self._origin:
                raise OriginInvalid(f"{found} is another server than {self._origin}; nothing is sent there")
            target = self._origin.target(url)
            if self._query and self._query not in target.partition("?")[2].split("&"):
                target += ("&" if "?" in target else "?") + self._query
            if len(self._targets) < _TARGETS_KEPT:
                self._targets[url] = target
        return target

    def _bound(self, response: httpx2.Response) -> int | None:
        """Return how large the body may be; None for a stream of events, whose events mcp's client bounds."""
        host = self._origin.authority
        headers = checked_headers(response.headers.multi_items(), host)
        if (encoding := headers.get("content-encoding", "identity").lower()) not in {"", "identity"}:
            message = f"{host}: content-encoding {encoding[:60]!r}, which was not asked for"
            raise NetworkFailure(FailureKind.protocol, message)
        if headers.get("content-type", "").partition(";")[0].strip().lower() == _EVENTS:
            return None
        check_announced_length(headers, host, self._max_bytes)
        return self._max_bytes


class _Body(httpx2.AsyncByteStream):
    """A body that ends in McpRequestFailed when it grows past its bound or breaks off."""

    def __init__(self, inner: Any, origin: Origin) -> None:
        self._inner = inner
        self._origin = origin
        self.max_bytes: int | None = None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        try:
            async for chunk in self._inner:
                size += len(chunk)
                if self.max_bytes is not None and size > self.max_bytes:
                    message = f"{self._origin.authority}: the answer is larger than {self.max_bytes:,} bytes"
                    raise McpRequestFailed(NetworkFailure(FailureKind.too_large, message))
                yield chunk
        except McpRequestFailed:
            raise
        except NetworkFailure as failure:
            raise McpRequestFailed(failure) from None
        except _FOREIGN as error:
            raise McpRequestFailed(failure_of(error, self._origin)) from None

    async def aclose(self) -> None:
        await self._inner.aclose()


_TARGETS_KEPT = 100
_header_problem = lru_cache(maxsize=1000)(header_problem)
_SET_BY_HTTPX = frozenset({"host", "connection", "content-length", "transfer-encoding"})
_FOREIGN = (
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    httpcore2.ProxyError,
    httpcore2.TimeoutException,
    httpcore2.UnsupportedProtocol,
    OSError,
)


def _pool(
    origin: Origin, settings: ConnectionSettings, *, timeout: float, is_configured: bool, resolver: Resolver
) -> Http11Pool | httpcore2.AsyncConnectionPool:
    limits: dict[str, Any] = {
        "max_connections": _CONNECTIONS,
        "max_keepalive_connections": _IDLE_CONNECTIONS,
        "keepalive_expiry": _IDLE_SECONDS,
        "ssl_context": ssl_context(settings) if origin.scheme == "https" else None,
    }
    rules = AddressRules.of(origin, settings.allow_addresses, is_configured=is_configured)
    proxy_url = environment_proxy(origin) if settings.environment_proxy else None
    if proxy_url is not None:
        check_as_written(origin, rules)
        proxy = httpx2.Proxy(proxy_url)
        return httpcore2.AsyncHTTPProxy(str(proxy.url), proxy_auth=proxy.raw_auth, **limits)
    return Http11Pool(origin, rules, resolver, connect_seconds=timeout, ssl_context=limits["ssl_context"])
