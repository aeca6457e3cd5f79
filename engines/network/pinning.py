"""An HTTP client tied to one checked address of its host, made anew when the name moves (rule S7, DNS rebinding)."""

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

import structlog
from pyreqwest.client import Client, ClientBuilder
from pyreqwest.proxy import ProxyBuilder

from engines.network.addresses import AddressRules, Resolver, check_as_written, resolved, system_resolver
from engines.network.connection import ConnectionSettings
from engines.network.failures import AddressRefused, NetworkFailure
from engines.network.origins import Address, Origin
from engines.network.proxies import environment_proxy
from engines.network.tls import TLSFiles, read_tls_files, unusable_files, warn_when_unverified

if TYPE_CHECKING:
    from pyreqwest.compatibility.httpx import HttpxTransport

_log = structlog.get_logger(__name__)
RESOLVE_AGAIN_SECONDS = 60.0
CONNECT_SECONDS = 10.0
# Servers close idle sockets after 5 s to 75 s, and a dead one taken from the pool costs a retry.
_IDLE_SECONDS = 60
DEFAULT_CONNECTIONS = 128


@dataclass(slots=True, eq=False)
class Pinned:
    """One client; `base` is the origin as it is to be written in URLs for it."""

    base: str
    address: Address | None
    client: Client
    transport: "HttpxTransport"
    in_flight: int = 0
    is_retired: bool = False

    async def release(self) -> None:
        """Give back what `Pins.acquire` gave; the last user of a retired client closes it."""
        self.in_flight -= 1
        if self.is_retired and not self.in_flight:
            await self.client.close()

    async def retire(self) -> None:
        """Close the client as soon as nobody uses it."""
        self.is_retired = True
        if not self.in_flight:
            await self.client.close()


@dataclass(slots=True)
class Pins:
    """Hands out the client of an origin; `resolver` may be another one than the system's (tests do)."""

    origin: Origin
    settings: ConnectionSettings
    rules: AddressRules
    resolver: Resolver = system_resolver
    resolve_again_seconds: float = RESOLVE_AGAIN_SECONDS
    connections: int = DEFAULT_CONNECTIONS
    _pinned: Pinned | None = None
    _addresses: tuple[Address, ...] = ()
    _look_again_at: float = 0.0
    _files: TLSFiles | None = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def open(self) -> None:
        """Read the files of TLS and warn when nothing is verified; nothing is resolved or contacted yet."""
        async with self._lock:
            await self._open()

    async def _open(self) -> TLSFiles:
        if self._files is None:
            files = await asyncio.to_thread(read_tls_files, self.settings)
            warn_when_unverified(self.settings, self.origin)
            if files.authorities or files.identity:
                await _build(_secured(ClientBuilder().no_proxy(), files)).close()
            self._files = files
        return self._files

    async def close(self) -> None:
        """Close the client; requests under way end as lost. It may be opened again."""
        pinned, self._pinned, self._files, self._look_again_at = self._pinned, None, None, 0.0
        if pinned is not None:
            await pinned.client.close()

    async def acquire(self, *, instead_of: Pinned | None = None) -> Pinned:
        """Return the client, to be given back with `release`; `instead_of` asks for the next address of the host.

        Raises AddressRefused, NetworkFailure (connect) when the name has no address, ConfigurationInvalid.
        """
        pinned = self._pinned
        if pinned is None or instead_of is not None or asyncio.get_running_loop().time() >= self._look_again_at:
            async with self._lock:
                pinned = await self._current(instead_of)
        pinned.in_flight += 1
        return pinned

    def others(self, address: Address | None) -> int:
        """How many further addresses the host has."""
        return max(len(self._addresses) - 1, 0) if address in self._addresses else 0

    async def _current(self, instead_of: Pinned | None) -> Pinned:
        files = await self._open()
        now = asyncio.get_running_loop().time()
        if self._pinned is None or now >= self._look_again_at:
            await self._look_up(now)
        pinned = self._pinned
        if pinned is not None and pinned is not instead_of and self._still_stands(pinned):
            return pinned
        address = self._next_address(pinned.address if pinned else None)
        self._pinned = self._made(address, files)
        if pinned is not None:
            await pinned.retire()
        return self._pinned

    async def _look_up(self, now: float) -> None:
        if self._proxy() is not None:
            check_as_written(self.origin, self.rules)
            self._addresses = ()  # the proxy resolves, and is the one to be connected to
        else:
            try:
                self._addresses = await resolved(self.origin.host, self.origin.port, self.rules, self.resolver)
            except AddressRefused:
                if self._pinned is not None:
                    pinned, self._pinned = self._pinned, None
                    await pinned.retire()
                raise
            except NetworkFailure as failure:
                if self._pinned is None:
                    raise
                _log.warning("a name cannot be resolved again", host=self.origin.host, cause=failure.message)
        self._look_again_at = now + self.resolve_again_seconds

    def _still_stands(self, pinned: Pinned) -> bool:
        return pinned.address in self._addresses if self._addresses else pinned.address is None

    def _next_address(self, last: Address | None) -> Address | None:
        if last in self._addresses:
            return self._addresses[(self._addresses.index(last) + 1) % len(self._addresses)]
        return self._addresses[0] if self._addresses else None

    def _proxy(self) -> str | None:
        return environment_proxy(self.origin) if self.settings.environment_proxy else None

    def _made(self, address: Address | None, files: TLSFiles) -> Pinned:
        from pyreqwest.compatibility.httpx import HttpxTransport  # noqa: PLC0415 (httpx takes 0.1 s)

        builder = (
            ClientBuilder()
            .connect_timeout(timedelta(seconds=CONNECT_SECONDS))
            .pool_idle_timeout(timedelta(seconds=_IDLE_SECONDS))
            .max_connections(self.connections)
            .follow_redirects(enable=False)
            .referer(enable=False)
            # Unpacking is ours, because it must be bounded.
            .gzip(enable=False)
            .brotli(enable=False)
            .zstd(enable=False)
            .deflate(enable=False)
            .http1_only()
            .no_proxy()
        )
        base = str(self.origin)
        if address is None:
            builder = builder.proxy(ProxyBuilder.all(self._proxy() or base))
        elif self.origin.is_number:
            # A number is written out, so that nobody below reads it in another way than the resolver did.
            base = str(Origin(self.origin.scheme, str(address), self.origin.port))
        elif self.origin.address is None:
            builder = builder.resolve(self.origin.host, str(address), self.origin.port)
        client = _build(_secured(builder, files))
        return Pinned(base, address, client, HttpxTransport(client, close_client=False))


def _secured(builder: ClientBuilder, files: TLSFiles) -> ClientBuilder:
    builder = builder.min_tls_version("TLSv1.2")
    if not files.verifies:
        builder = builder.danger_accept_invalid_certs(enable=True)
    try:
        if files.authorities is not None:
            builder = builder.add_root_certificate_pem(files.authorities)
        if files.identity is not None:
            builder = builder.identity_pem(files.identity)
    except ValueError as error:
        raise unusable_files(_innermost(error)) from None
    return builder


def _build(builder: ClientBuilder) -> Client:
    try:
        return builder.build()
    except ValueError as error:
        raise unusable_files(_innermost(error)) from None


def _innermost(error: ValueError) -> str:
    causes = getattr(error, "details", {}).get("causes") or [{"message": str(error)}]
    return str(causes[-1]["message"])
