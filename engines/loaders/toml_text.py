"""TOML parsed with a limit that the standard parser lacks: a key of many parts costs it quadratic time (rule S16)."""

import re
import tomllib
from typing import Any

MOST_KEY_PARTS = 100
_PART = r"""(?:"[^"\n]*+"|'[^'\n]*+'|[\w-]++)"""
_LONG_KEY = re.compile(rf"(?<![\w-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{MOST_KEY_PARTS}}}")


def parsed_toml(text: str) -> dict[str, Any]:
    """Return the document; TOMLDecodeError, ValueError or RecursionError for what is none."""
    if long := _LONG_KEY.search(text):
        line = text.count("\n", 0, long.start()) + 1
        column = long.start() - text.rfind("\n", 0, long.start())
        raise ValueError(f"more than {MOST_KEY_PARTS} names joined by dots (at line {line}, column {column})")
    return tomllib.loads(text)
