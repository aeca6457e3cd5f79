"""Requests to one origin: checked address, credentials bound to it, a total deadline, a bounded answer."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self
from urllib.parse import quote

from pyreqwest.exceptions import PyreqwestError

from engines.network.addresses import AddressRules, Resolver, system_resolver
from engines.network.answers import (
    ACCEPTED_ENCODINGS,
    Answer,
    check_announced_length,
    checked_headers,
    read_bounded,
    unpacked,
)
from engines.network.causes import failure_of
from engines.network.connection import ConnectionSettings
from engines.network.failures import FailureKind, NetworkFailure
from engines.network.headers import header_problem
from engines.network.origins import Origin, OriginInvalid
from engines.network.pinning import DEFAULT_CONNECTIONS, RESOLVE_AGAIN_SECONDS, Pinned, Pins

if TYPE_CHECKING:
    import httpx

DEFAULT_TIMEOUT_SECONDS = 30.0
# Unpacking more than this would hold up the loop for milliseconds.
_UNPACK_IN_THREAD_BYTES = 64 << 10
_USUAL_HEADERS = (("user-agent", "parley"), ("accept-encoding", ACCEPTED_ENCODINGS))
_LATER_SECONDS = 0.25
Headers = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class _Sending:
    """One request with its bounds; `deadline` by the loop's clock."""

    method: str
    target: str
    headers: Headers
    content: bytes
    deadline: float
    max_bytes: int


class HttpClient:
    """One origin's client. `async with HttpClient(...)`, or `open` and `close`; safe for any number of tasks of a loop.

    `origin` defaults to that of `settings.url`. Credentials and headers of the settings are sent to that origin only
    (rule S8); a client for another origin sends none. `is_configured` says whether the operator wrote the origin down,
    which gives a right to the address that it names itself; by default it is so for that of `settings.url` alone.
    Redirects are answers like any other and never followed.
    """

    def __init__(
        self,
        settings: ConnectionSettings,
        origin: Origin | None = None,
        *,
        is_configured: bool | None = None,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        connections: int = DEFAULT_CONNECTIONS,
        resolver: Resolver = system_resolver,
        resolve_again_seconds: float = RESOLVE_AGAIN_SECONDS,
    ) -> None:
        own = settings.origin
        if origin is None and own is None:
            raise OriginInvalid("there is no url to connect to; give one")
        self.origin: Origin = origin or own  # type: ignore[assignment]  # one of them is there
        is_own = self.origin == own
        rules = AddressRules.of(
            self.origin,
            settings.allow_addresses,
            is_configured=is_own if is_configured is None else is_configured,
        )
        shown = settings if is_own else settings.model_copy(update=_NO_IDENTITY)
        self._pins = Pins(self.origin, shown, rules, resolver, resolve_again_seconds, connections)
        self._timeout_seconds = settings.timeout or timeout_seconds
        self._max_bytes = settings.max_response_bytes
        self._identity: Headers = settings.credential_headers if is_own else ()
        self._identity_names = frozenset(name.lower() for name, _ in self._identity)
        key = settings.api_key if is_own else None
        self._query = _as_query(key.name, key.value.get_secret_value()) if key and key.location == "query" else ""

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Read the files of TLS, so that a wrong one is told now (ConfigurationInvalid); nothing is contacted."""
        await self._pins.open()

    async def close(self) -> None:
        """Close all connections; what is under way ends as lost."""
        await self._pins.close()

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Iterable[tuple[str, str]] = (),
        content: bytes = b"",
        timeout_seconds: float | None = None,
        max_bytes: int | None = None,
    ) -> Answer:
        """Send one request and read its whole answer, of any status, within `timeout_seconds` in all.

        `url` is absolute and of this origin, or starts with its path. Raises NetworkFailure; never retries a request
        that a server may have seen.
        """
        seconds = timeout_seconds or self._timeout_seconds
        target = self.origin.target(url)
        if self._query:
            target += ("&" if "?" in target else "?") + self._query
        sent = self._checked(headers)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        try:
            async with asyncio.timeout_at(deadline):
                return await self._answer(
                    _Sending(method, target, sent, content, deadline, max_bytes or self._max_bytes)
                )
        except TimeoutError:
            message = f"{self.origin.authority}: no complete answer within {seconds:g} s"
            raise NetworkFailure(FailureKind.timeout, message) from None

    def _checked(self, headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """Return all that is sent; a caller's header may not replace one that says who is asking (rules S6, S8)."""
        sent = list(self._identity)
        names = set(self._identity_names)
        for name, value in headers:
            if problem := header_problem(name, value):
                raise NetworkFailure(FailureKind.refused_request, f"{self.origin.authority}: {problem}")
            lower = name.lower()
            if lower in self._identity_names:
                message = f"{self.origin.authority}: the header {name!r} is given by the configuration alone"
                raise NetworkFailure(FailureKind.refused_request, message)
            names.add(lower)
            sent.append((name, value))
        sent.extend(pair for pair in _USUAL_HEADERS if pair[0] not in names)
        return sent

    async def _answer(self, sending: "_Sending") -> Answer:
        """Try the host's addresses in turn until one takes the connection."""
        pinned = await self._pins.acquire()
        for _ in range(self._pins.others(pinned.address)):
            try:
                return await self._exchange(pinned, sending)
            except NetworkFailure as failure:
                if failure.kind is not FailureKind.connect:
                    raise
            pinned = await self._pins.acquire(instead_of=pinned)
        return await self._exchange(pinned, sending)

    async def _exchange(self, pinned: Pinned, sending: "_Sending") -> Answer:
        import httpx  # noqa: PLC0415 (0.1 s, paid by who sends requests)

        left = max(sending.deadline - asyncio.get_running_loop().time(), 0.001)
        try:
            request = httpx.Request(
                sending.method,
                pinned.base + sending.target,
                headers=sending.headers,
                content=sending.content or None,
                # Also told to the transport: cancelling the wait alone leaves its request running.
                extensions={"timeout": {"read": left + _LATER_SECONDS}},
            )
            response = await pinned.transport.handle_async_request(request)
            try:
                return await self._read(response, sending.max_bytes)
            finally:
                await response.aclose()
        except (httpx.HTTPError, httpx.InvalidURL, PyreqwestError) as error:
            raise failure_of(error, self.origin) from None
        finally:
            await pinned.release()

    async def _read(self, response: "httpx.Response", max_bytes: int) -> Answer:
        host = self.origin.authority
        headers = checked_headers(response.headers.multi_items(), host)
        check_announced_length(headers, host, max_bytes)
        body = await read_bounded(response.stream, host, max_bytes)  # type: ignore[arg-type]  # an async one
        if encoding := headers.get("content-encoding"):
            if len(body) > _UNPACK_IN_THREAD_BYTES:
                body = await asyncio.to_thread(unpacked, body, encoding, host, max_bytes)
            else:
                body = unpacked(body, encoding, host, max_bytes)
        return Answer(response.status_code, headers, body)


_NO_IDENTITY = {"client_certificate": None, "client_key": None}


def _as_query(name: str, value: str) -> str:
    return f"{quote(name, safe='')}={quote(value, safe='')}"
