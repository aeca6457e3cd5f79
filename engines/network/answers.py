"""A server's answer, read whole within its bounds: bytes on the wire, bytes unpacked, and how they compare (S17)."""

import zlib
from collections.abc import AsyncIterable, Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

from engines.network.failures import FailureKind, NetworkFailure

ACCEPTED_ENCODINGS = "gzip, deflate, zstd"
MOST_HEADERS = 100
MOST_HEADER_BYTES = 64 << 10
MOST_EXPANSION = 100
# Small bodies may shrink more: a few hundred equal rows are no bomb.
FREE_EXPANSION_BYTES = 64 << 10
_STEP = 64 << 10
_ZSTD_WINDOW = 8 << 20
_ZSTD_SLICE = 128
_MOST_MEMBERS = 100


@dataclass(frozen=True)
class Answer:
    """Status, headers (names in lower case, values of one name joined by `, `) and the unpacked body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @cached_property
    def content_type(self) -> str:
        """The media type in lower case, without parameters; empty when the server says none."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


def checked_headers(pairs: list[tuple[str, str]], host: str) -> Mapping[str, str]:
    """Return the headers as a read-only mapping; NetworkFailure (too_large) when they pass all measure."""
    if len(pairs) > MOST_HEADERS or sum(len(name) + len(value) for name, value in pairs) > MOST_HEADER_BYTES:
        raise NetworkFailure(
            FailureKind.too_large, f"{host}: more than {MOST_HEADERS} headers or {MOST_HEADER_BYTES:,} bytes of them"
        )
    headers: dict[str, str] = {}
    for name, value in pairs:
        lower = name.lower()
        headers[lower] = f"{headers[lower]}, {value}" if lower in headers else value
    return MappingProxyType(headers)


def check_announced_length(headers: Mapping[str, str], host: str, max_bytes: int) -> None:
    """Refuse a body before a byte of it is read when its own length says that it is too large."""
    length = headers.get("content-length", "")
    if length.isdecimal() and (len(length) > len(str(max_bytes)) or int(length) > max_bytes):
        raise _too_large(host, max_bytes)


async def read_bounded(chunks: AsyncIterable[bytes], host: str, max_bytes: int) -> bytes:
    """Read the body as it comes over the wire; NetworkFailure (too_large) past `max_bytes`."""
    first: bytes = b""
    rest: bytearray | None = None
    async for chunk in chunks:
        if rest is not None:
            rest += chunk
        elif first:
            rest = bytearray(first + chunk)
        else:
            first = chunk
        if len(first if rest is None else rest) > max_bytes:
            raise _too_large(host, max_bytes)
    return first if rest is None else bytes(rest)


def unpacked(body: bytes, encoding: str, host: str, max_bytes: int) -> bytes:
    """Undo the content encoding, at most one; NetworkFailure when it is none of ours, broken, or a bomb."""
    name = encoding.strip().lower()
    if name in {"", "identity"} or not body:
        return body
    unpack = _UNPACKERS.get(name)
    if unpack is None:
        raise NetworkFailure(
            FailureKind.protocol, f"{host}: content-encoding {name[:60]!r}; asked for was one of {ACCEPTED_ENCODINGS}"
        )
    limit = min(max_bytes, max(FREE_EXPANSION_BYTES, MOST_EXPANSION * len(body)))
    parts: list[bytes] = []
    size = 0
    try:
        for part in unpack(body):
            size += len(part)
            if size > max_bytes:
                raise _too_large(host, max_bytes)
            if size > limit:
                cause = f"the body unpacks to more than {MOST_EXPANSION} times its {len(body):,} bytes"
                raise NetworkFailure(FailureKind.too_large, f"{host}: {cause}")
            parts.append(part)
    except _BROKEN as error:
        raise NetworkFailure(FailureKind.protocol, f"{host}: the {name} body cannot be unpacked: {error}") from None
    return b"".join(parts)


class _BrokenBody(ValueError):
    """A packed body that is cut short or goes on behind its end."""


_BROKEN = (_BrokenBody, zlib.error, OSError)


def _gunzipped(body: bytes) -> Iterator[bytes]:
    """Members may follow one another, and some servers pad; each costs a copy of the rest, so they are counted."""
    for _ in range(_MOST_MEMBERS):
        stream = zlib.decompressobj(wbits=31)
        yield from _inflated(stream, body)
        body = stream.unused_data.lstrip(b"\0")
        if not body:
            return
    raise _BrokenBody(f"it has more than {_MOST_MEMBERS} members")


def _undeflated(body: bytes) -> Iterator[bytes]:
    """`deflate` is zlib's format by the book, and raw by many servers."""
    is_zlib = len(body) > 1 and body[0] & 0x0F == zlib.DEFLATED and (body[0] << 8 | body[1]) % 31 == 0
    stream = zlib.decompressobj(wbits=15 if is_zlib else -15)
    yield from _inflated(stream, body)
    if stream.unused_data:
        raise _BrokenBody("there is more behind its end")


def _inflated(stream: "zlib._Decompress", body: bytes) -> Iterator[bytes]:
    while not stream.eof:
        part = stream.decompress(body, _STEP)
        body = stream.unconsumed_tail
        if not part and not body and not stream.eof:
            raise _BrokenBody("it is cut short")
        yield part


def _unzstd(body: bytes) -> Iterator[bytes]:
    """Fed in small slices, since each becomes up to 32,000 times its size at once; frames may follow one another."""
    import zstandard  # noqa: PLC0415 (few servers use it)

    decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
    stream = None
    try:
        for start in range(0, len(body), _ZSTD_SLICE):
            piece = body[start : start + _ZSTD_SLICE]
            while piece:
                stream = stream or decompressor.decompressobj()
                yield stream.decompress(piece)
                piece = stream.unused_data if stream.eof else b""
                stream = None if stream.eof else stream
    except zstandard.ZstdError as error:
        raise _BrokenBody(str(error)) from None
    if stream is not None:
        raise _BrokenBody("it is cut short")


_UNPACKERS: Mapping[str, Callable[[bytes], Iterator[bytes]]] = {
    "gzip": _gunzipped,
    "x-gzip": _gunzipped,
    "deflate": _undeflated,
    "zstd": _unzstd,
}


def _too_large(host: str, max_bytes: int) -> NetworkFailure:
    message = f"{host}: the answer is larger than {max_bytes:,} bytes; max_response_bytes allows more"
    return NetworkFailure(FailureKind.too_large, message)
