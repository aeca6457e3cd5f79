"""Parts of a setup's answer kept for later requests: by JSON pointer (RFC 6901), from a header, from a cookie."""

import re
from collections.abc import Mapping
from typing import Any

MAX_VALUE_CHARS = 4096

_HEADER, _COOKIE = "header:", "cookie:"
_NOTHING = object()


def check_source(source: str) -> None:
    """ValueError for a source that is none of the three."""
    if source.startswith((_HEADER, _COOKIE)) and source.partition(":")[2]:
        return
    if source and not source.startswith("/"):
        raise ValueError(f"{source!r} is no JSON pointer (/data/id), header:NAME or cookie:NAME")
    if re.search(r"~(?![01])", source):
        raise ValueError(f"{source!r}: in a JSON pointer ~ is written ~0, and / inside a key ~1")


def captured(source: str, value: Any, headers: Mapping[str, str]) -> str | int | float | bool:
    """Return the single value that a source names; LookupError says what is not there or not single.

    `headers` stand under their names in lower case, those of one name joined by `, `.
    """
    if source.startswith(_HEADER):
        found = headers.get(source.removeprefix(_HEADER).lower(), _NOTHING)
    elif source.startswith(_COOKIE):
        found = _cookie(source.removeprefix(_COOKIE), headers.get("set-cookie", ""))
    else:
        found = _pointed(source, value)
    match found:
        case bool() | int() | float():
            return found
        case str() if len(found) <= MAX_VALUE_CHARS:
            return found
        case str():
            raise LookupError(f"the value at {source!r} is longer than {MAX_VALUE_CHARS} characters")
        case dict() | list():
            raise LookupError(f"{source!r} is an object or a list in the answer; name a single value in it")
        case _:
            raise LookupError(f"the answer has nothing at {source!r}")


def _pointed(pointer: str, value: Any) -> Any:
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value.get(key, _NOTHING)
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return _NOTHING
    return value


def _cookie(name: str, set_cookie: str) -> Any:
    match = re.search(rf'(?:^|,\s*){re.escape(name)}="?([^;,"]*)', set_cookie)
    return _NOTHING if match is None else match[1]
