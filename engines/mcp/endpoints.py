"""Where a server may be found when its URL says only the host (rule D40), and how it is named without secrets."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

Kind = Literal["http", "sse"]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One address and what is spoken there."""

    kind: Kind
    url: str

    @property
    def name(self) -> str:
        """The URL without user, query and fragment."""
        return shown(self.url)


def candidates(url: str, transport: str | None, *, found: Endpoint | None = None) -> tuple[Endpoint, ...]:
    """Return what to try, in turn: a bare host is asked at /mcp, then at /sse; a path is taken at its word first.

    `found` is what an earlier search came to: tried first when it is one of these.
    """
    kinds = [kind for kind in _KINDS if transport in {None, kind}]
    tried = [Endpoint(kind, at) for kind in kinds for at in _places(url, kind, is_certain=transport is not None)]
    if found is not None:
        tried.sort(key=lambda each: (each.kind, each.name) != (found.kind, found.name))
    return tuple(tried)


def shown(url: str) -> str:
    """Return a URL as messages and stored recipes may hold it: without user, query and fragment."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


_KINDS: tuple[Kind, ...] = ("http", "sse")
_USUAL_PATH: Mapping[Kind, str] = {"http": "/mcp", "sse": "/sse"}


def _places(url: str, kind: Kind, *, is_certain: bool) -> list[str]:
    parts = urlsplit(url)
    path = parts.path.rstrip("/")
    usual = urlunsplit((parts.scheme, parts.netloc, path + _USUAL_PATH[kind], parts.query, ""))
    if not path:
        return [usual]
    other = next(each for each in _KINDS if each != kind)
    if path.endswith(_USUAL_PATH[kind]) or is_certain:
        return [url]
    if path.endswith(_USUAL_PATH[other]):
        return []
    return [url] if kind == "http" else [usual]
