"""What an answer's bytes say: JSON where they are JSON, else text, else base64 (rule D58); bounded in depth."""

import base64
import json
import re
from typing import Any, NoReturn

import orjson

from engines.errors import ToolFailed
from engines.tool import ErrorType

MAX_DEPTH = 64

_OPENING = (b"[", b"{")
# Integers of that many digits may not fit 64 bits, and orjson would round them.
_LONG_DIGITS = re.compile(rb"\d{19}")
# Text, whatever its bytes look like; what is of another type and no UTF-8 is no text.
_TEXT_TYPE = re.compile(r"text/|application/(?:.*\+)?(?:json|xml|javascript|x-www-form-urlencoded)", re.IGNORECASE)
_CHARSET = re.compile(r"charset\s*=\s*\"?([\w.:-]+)", re.IGNORECASE)
_CHARSETS = frozenset(
    {"ascii", "big5", "euc-jp", "euc-kr", "gb18030", "gb2312", "gbk", "iso-8859-1", "iso-8859-15", "latin-1"}
    | {"shift_jis", "us-ascii", "utf-16", "windows-1250", "windows-1251", "windows-1252"}
)


def value_of(body: bytes, content_type: str) -> Any:
    """Return the JSON value of a body, else its text; ToolFailed when it nests deeper than `MAX_DEPTH`.

    Bytes that are no text become `{"content_type", "base64"}`.
    """
    if _may_be_json(body, content_type):
        try:
            return _bounded(_parsed(body), body)
        except (ValueError, RecursionError):
            pass
    charset = _charset_of(content_type)
    try:
        return body.decode(charset)
    except (UnicodeDecodeError, LookupError):
        if content_type and not _TEXT_TYPE.match(content_type):
            return {"content_type": content_type.partition(";")[0].strip(), "base64": base64.b64encode(body).decode()}
        return body.decode("utf-8", "replace")


def _may_be_json(body: bytes, content_type: str) -> bool:
    """Whether to try: said so, or looking like an object or list of a server that says something else or nothing."""
    return "json" in content_type.lower() or body.lstrip()[:1] in _OPENING


def _parsed(body: bytes) -> Any:
    if _LONG_DIGITS.search(body) is None:
        return orjson.loads(body)
    return json.loads(body, parse_constant=_no_number)


def _no_number(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON number")


def _bounded(value: Any, body: bytes) -> Any:
    """Return the value; ToolFailed when it nests too deeply to be written down again."""
    if body.count(b"[") + body.count(b"{") <= MAX_DEPTH:
        return value
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MAX_DEPTH):
        level = [
            item
            for each in level
            for item in (each.values() if isinstance(each, dict) else each)
            if isinstance(item, dict | list)
        ]
        if not level:
            return value
    raise ToolFailed(ErrorType.unparseable_result, f"the answer nests deeper than {MAX_DEPTH} levels")


def _charset_of(content_type: str) -> str:
    match = _CHARSET.search(content_type)
    return match[1].lower() if match and match[1].lower() in _CHARSETS else "utf-8"
