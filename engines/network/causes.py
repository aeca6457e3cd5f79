"""From the transport's exceptions to ours: which sort of failure it is, in words that hold no URL and no header."""

import ssl
from collections.abc import Iterator
from typing import Any

from engines.network.failures import FailureKind, NetworkFailure
from engines.network.origins import Origin

_TLS_SIGNS = ("certificate", "handshake", "tls", "ssl", "alert", "corrupt message", "unknownissuer")
_UNREADABLE = {"BodyDecodeError", "DecodeError", "DecodingError", "RemoteProtocolError"}
_ENDED_SIGNS = ("close_notify", "reset", "closed before")
_TOO_LARGE_SIGNS = ("too large", "count overflow", "over limit", "bytes overflow", "too many headers")


def failure_of(error: Exception, origin: Origin) -> NetworkFailure:
    """Classify what a request ended with; the message names host, cause and, where there is one, the way out."""
    host = origin.authority
    texts = list(_causes(error))
    cause = texts[-1] if texts else type(error).__name__
    lower = cause.lower()
    names = {type(each).__name__ for each in _chain(error)}
    while_connecting = any("(Connect)" in text for text in texts) or "ConnectTimeout" in names
    is_tls = any(isinstance(each, ssl.SSLError) for each in _chain(error)) or "fatal alert" in lower
    if is_tls or (while_connecting and any(sign in lower for sign in _TLS_SIGNS)):
        return _tls_failed(host, cause)
    if while_connecting:
        return _no_connection(host, cause)
    if any(name.endswith(("Timeout", "TimeoutError", "TimeoutException")) for name in names):
        return NetworkFailure(FailureKind.timeout, f"{host}: no complete answer in time")
    if any(sign in lower for sign in _TOO_LARGE_SIGNS):
        return NetworkFailure(FailureKind.too_large, f"{host}: {cause}")
    if names & {"InvalidURL", "BuilderError", "UnsupportedProtocol"}:
        return NetworkFailure(FailureKind.refused_request, f"{host}: the request cannot be sent: {cause}")
    if (
        names & {"DecodingError", "DecodeError", "RemoteProtocolError", "BodyDecodeError"}
        and "end of file" not in lower
    ):
        return NetworkFailure(FailureKind.protocol, f"{host}: the answer cannot be read: {cause}")
    return lost(origin, cause)


def connection_failure(error: OSError, origin: Origin) -> NetworkFailure:
    """Classify why a connection did not come about, when Python's own sockets tried."""
    if isinstance(error, ssl.SSLError):
        return failure_of(error, origin)
    if origin.scheme == "https" and isinstance(error, (ConnectionResetError, ConnectionAbortedError, BrokenPipeError)):
        return _tls_failed(origin.authority, "the server ended the handshake")
    return _no_connection(origin.authority, error.strerror or str(error) or type(error).__name__)


def lost(origin: Origin, cause: str = "") -> NetworkFailure:
    """Make the failure of a connection that ended while its answer was awaited."""
    message = f"{origin.authority}: the connection ended before the answer was whole" + (f": {cause}" if cause else "")
    if origin.scheme == "https" and (not cause or any(sign in cause for sign in _ENDED_SIGNS)):
        message += "; does the server ask for a client_certificate?"
    return NetworkFailure(FailureKind.lost, message)


def _tls_failed(host: str, cause: str) -> NetworkFailure:
    if "fatal alert" in cause.lower() or "[SSL: TLSV13_ALERT" in cause or "_ALERT_" in cause:
        way_out = "the server refuses this client; does it ask for a client_certificate?"
    else:
        way_out = "is it the right server, with TLS 1.2 or later? `verify: <CA file>` trusts an authority of yours"
    return NetworkFailure(FailureKind.tls, f"{host}: TLS failed: {cause}; {way_out}")


def _no_connection(host: str, cause: str) -> NetworkFailure:
    return NetworkFailure(FailureKind.connect, f"{host}: no connection: {cause}; is the server up?")


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _causes(error: BaseException) -> Iterator[str]:
    """Yield what each step says, outermost first, without those that quote the URL (and so a key in its query)."""
    details: dict[str, Any] = next((each.details for each in _chain(error) if hasattr(each, "details")), {})
    told = [str(cause["message"]).partition(": https://docs.rs")[0] for cause in details.get("causes") or ()]
    yield from (text for text in told or [str(error)] if "url (" not in text and "://" not in text)
