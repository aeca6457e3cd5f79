"""A path template filled with values, each of them inside its own segment whatever it says (rule D55)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self
from urllib.parse import quote

from engines.errors import InvalidTool, ToolFailed
from engines.tool import ErrorType

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_STRAY_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_ALLOWED_IN_PATHS = "/%:@!$&'()*+,;=~"
_ALLOWED_IN_QUERIES = "/%:@!$&()*+,;=~?"
_DOTS = frozenset({".", "..", "%2e", ".%2e", "%2e.", "%2e%2e"})


@dataclass(frozen=True, slots=True)
class PathTemplate:
    """`/orders/{id}`: literals and names in turn, a literal first and last; `query` is what stood behind a `?`."""

    literals: tuple[str, ...]
    names: tuple[str, ...]
    query: str = ""

    @classmethod
    def of(cls, written: str, *, prefix: str = "") -> Self:
        """Read a template under a base path; InvalidTool for one that leaves it."""
        path, _, query = written.partition("#")[0].partition("?")
        parts = _PLACEHOLDER.split(prefix.rstrip("/") + "/" + path.removeprefix("/"))
        template = cls(tuple(map(_literal, parts[::2])), tuple(parts[1::2]), quote(query, safe=_ALLOWED_IN_QUERIES))
        if any(_is_dots(segment) for segment in "\0".join(template.literals).split("/")):
            raise InvalidTool(f"the path {written!r} goes up by dots; write it out")
        return template

    def filled(self, values: Mapping[str, str]) -> str:
        """Return the path with encoded values; ToolFailed when one is empty or would go up (`..`)."""
        if not self.names:
            return self.literals[0]
        parts = [self.literals[0]]
        for name, literal in zip(self.names, self.literals[1:], strict=True):
            parts += (values[name], literal)
        path = "".join(parts)
        # A client takes `..` away before it sends, and some servers `..;x` too; encoding dots would not help.
        if "." in path and any(_is_dots(segment) for segment in path.split("/")):
            message = f"path parameter {' or '.join(map(repr, self.names))}: a segment of dots goes up in the path"
            raise ToolFailed(ErrorType.validation, message)
        return path


def _is_dots(segment: str) -> bool:
    return segment.partition(";")[0].lower() in _DOTS


def _literal(text: str) -> str:
    return quote(_STRAY_PERCENT.sub("%25", text), safe=_ALLOWED_IN_PATHS)
