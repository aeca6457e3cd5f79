"""A document and the parts of it that local references (`#/components/…`) name; nothing is ever fetched for one."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from engines.errors import InvalidTool
from engines.plain import JSONObject

_MOST_HOPS = 32


class Document:
    """An OpenAPI document whose references are followed."""

    __slots__ = ("root", "siblings_count")

    def __init__(self, root: JSONObject) -> None:
        self.root = root
        self.siblings_count = not str(root.get("openapi", "3.0")).startswith("3.0")
        """Whether keywords beside a `$ref` in a schema hold too (OpenAPI 3.1) or are ignored."""

    def part(self, reference: Any) -> Any:
        """Return what a reference names (RFC 6901); InvalidTool when it is not in this document."""
        if not isinstance(reference, str):
            raise InvalidTool(f"a $ref is text, got {type(reference).__name__}")
        if not reference.startswith("#"):
            raise InvalidTool(f"{reference!r} lies outside the document and is not read; bundle it into one file")
        part: Any = self.root
        for step in reference[1:].split("/")[1:]:
            key = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(part, dict) and key in part:
                part = part[key]
            elif isinstance(part, list) and key.isdecimal() and int(key) < len(part):
                part = part[int(key)]
            else:
                raise InvalidTool(f"{reference!r} names nothing in the document")
        return part

    def resolved(self, written: Any) -> Any:
        """Follow a reference object (of a parameter, a body, a response, a path item) to what it stands for."""
        for _ in range(_MOST_HOPS):
            if not isinstance(written, Mapping) or "$ref" not in written:
                return written
            written = self.part(written["$ref"])
        raise InvalidTool(f"{written['$ref']!r} refers to itself")


def parts_of(schema: JSONObject, key: str) -> list[Any]:
    """Return the parts of an `allOf` and the like; none where it is no list."""
    parts = schema.get(key)
    return parts if isinstance(parts, list) else []
