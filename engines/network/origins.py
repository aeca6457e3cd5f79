"""Scheme, host and port of a URL in one spelling, and nothing accepted that two parsers could read in two ways (S7)."""

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import urlsplit

from engines.network.failures import FailureKind, NetworkFailure

_DEFAULT_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(
    r"(?=.{1,253}$)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*"
)
_NUMBER = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)$")
_UNCLEAN = re.compile(r"[\x00-\x20\x7f\\]")
# `.` and `..` as a segment, also percent-encoded: URL parsers take them out and so leave the path that was meant.
_DOT_SEGMENT = re.compile(r"(?i)(?:^|/)(?:\.|%2e){1,2}(?=/|$)")
Address = IPv4Address | IPv6Address


class OriginInvalid(NetworkFailure, ValueError):
    """A URL whose origin cannot be told, or that leaves the one it must stay in."""

    def __init__(self, message: str) -> None:
        super().__init__(FailureKind.refused_request, message)


@dataclass(frozen=True, slots=True)
class Origin:
    """`scheme://host:port` (RFC 6454): lower case, ASCII, no trailing dot, no brackets, port always known."""

    scheme: str
    host: str
    port: int

    @classmethod
    def of(cls, url: str) -> "Origin":
        """Read an absolute http or https URL; OriginInvalid says what is wrong with any other."""
        if _UNCLEAN.search(url):
            raise OriginInvalid("a URL holds no spaces, control characters or backslashes; percent-encode them")
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise OriginInvalid(f"cannot be read as a URL: {error}") from None
        if parts.scheme not in _DEFAULT_PORTS:
            scheme = f"not {parts.scheme!r}"[:40] if parts.scheme else "this one has no scheme"
            raise OriginInvalid(f"must be an http:// or https:// URL, {scheme}; for example http://localhost:8080")
        if "@" in parts.netloc:
            raise OriginInvalid("must hold no user or password; use basic_auth or bearer_token")
        if port == 0:
            raise OriginInvalid("port 0 cannot be reached; give the server's port")
        return cls(parts.scheme, _plain_host(parts.hostname or "", parts.netloc), port or _DEFAULT_PORTS[parts.scheme])

    @property
    def address(self) -> Address | None:
        """The host as an address, when it is written as one in the usual form."""
        try:
            return ip_address(self.host)
        except ValueError:
            return None

    @property
    def is_number(self) -> bool:
        """Whether a resolver reads the host as a number (`2130706433`, `0x7f.1`) and not as a name."""
        return self.address is None and bool(_NUMBER.match(self.host.rpartition(".")[2]))

    @property
    def authority(self) -> str:
        """`host` or `host:port` as a Host header has it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}"

    def target(self, url: str) -> str:
        """Return path and query of a URL of this origin, or of one that starts with its `/`; OriginInvalid otherwise.

        A path with a `.` or `..` segment is refused, however it is encoded: it names another path than it shows (S5).
        """
        if url.startswith("/") and not url.startswith("//"):
            if _UNCLEAN.search(url):
                raise OriginInvalid("a path holds no spaces, control characters or backslashes; percent-encode them")
            target = url
        else:
            if (found := Origin.of(url)) != self:
                raise OriginInvalid(f"{found} is another server than {self}; nothing is sent there")
            target = url[url.index("//") + 2 :]
            start = re.search(r"[/?#]", target)
            target = target[start.start() :] if start else "/"
            target = target if target.startswith("/") else f"/{target}"
        target = target.partition("#")[0]
        if ("." in target or "%2" in target) and _DOT_SEGMENT.search(target.partition("?")[0]):
            raise OriginInvalid("a path must not hold `.` or `..` as a segment")
        return target


def within(url: str, base: str) -> bool:
    """Whether a URL stays at or below a base URL: same origin, and the base's path is a prefix of whole segments."""
    try:
        origin = Origin.of(base)
        path, base_path = (origin.target(each).partition("?")[0] for each in (url, base))
    except OriginInvalid:
        return False
    prefix = base_path.rstrip("/")
    return path == prefix or path.startswith(f"{prefix}/")


def _plain_host(host: str, netloc: str) -> str:
    """Return a host in its one spelling: lower case, punycode, no trailing dot; an IPv6 address compressed."""
    if not host:
        raise OriginInvalid("the URL names no host; for example http://localhost:8080")
    if netloc.startswith("["):
        try:
            if "%" in host:
                raise ValueError
            return str(IPv6Address(host))
        except ValueError:
            raise OriginInvalid(f"{host[:60]!r} is no IPv6 address (and zones such as %eth0 are not taken)") from None
    plain = host.lower().removesuffix(".")
    if not plain.isascii():
        plain = _punycode(plain)
    if not _HOST.fullmatch(plain):
        raise OriginInvalid(f"{host[:60]!r} is no host name")
    return plain


def _punycode(host: str) -> str:
    import idna  # noqa: PLC0415 (its tables are large, and most hosts are ASCII)

    try:
        plain = idna.encode(host, uts46=True).decode()
    except UnicodeError:
        raise OriginInvalid(f"{host[:60]!r} is no host name") from None
    if _NUMBER.match(plain.rpartition(".")[2]):
        raise OriginInvalid(f"{host[:60]!r} becomes the address {plain}; write that")
    return plain
