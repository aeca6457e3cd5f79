"""How a value is written into a path, a query, a header or a cookie: the parameter styles of OpenAPI (RFC 6570).

Every name and value is percent-encoded by itself, so that no value can end its place: what separates is always ours.
"""

from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import quote

from engines.loaders.openapi.metadata import Style
from engines.plain import compact

Encode = Callable[[str], str]
Pairs = list[tuple[str, str]]

# What `allowReserved` may leave as it is: of the reserved characters those that end or split nothing in a query.
_HARMLESS_RESERVED = ":/?@!$()*,"
_DELIMITERS: dict[Style, str] = {"spaceDelimited": "%20", "pipeDelimited": "%7C", "tabDelimited": "%09"}


def encoded(text: str) -> str:
    """Return the text percent-encoded, all but letters, digits and `_.-~`; ValueError for half a surrogate pair."""
    return quote(text, safe="")


def encoded_but_reserved(text: str) -> str:
    """Return the text for a query whose server wants reserved characters as they are (`allowReserved`)."""
    return quote(text, safe=_HARMLESS_RESERVED)


def as_it_is(text: str) -> str:
    """Return the text: header values are checked, not encoded."""
    return text


def scalar(value: Any) -> str:
    """Return a single value as text: `true`, `1.5`; an object or list inside another value is written as JSON."""
    return value if isinstance(value, str) else compact(value)


def path_text(name: str, value: Any, style: Style = "simple", *, explode: bool = False) -> str:
    """Return what stands in a path for the value: `blue`, `.blue`, `;color=blue`; "" for what has no value."""
    match style:
        case "label":
            parts = _joined(value, encoded, explode=explode, between="." if explode else ",")
            return f".{parts}" if parts else ""
        case "matrix":
            return _matrix(encoded(name), value, explode=explode)
        case _:
            return _joined(value, encoded, explode=explode, between=",")


def query_pairs(
    name: str, value: Any, style: Style = "form", *, explode: bool = True, encode: Encode = encoded
) -> Pairs:
    """Return the encoded `name=value` pairs of a query; none for what has no value."""
    if value is None:
        return []
    if not isinstance(value, dict | list):
        return [(encoded(name), encode(scalar(value)))]
    if style == "deepObject" and isinstance(value, dict):
        return list(_deep(name, value, encode))
    if explode and isinstance(value, dict):
        return [(encoded(key), encode(scalar(item))) for key, item in value.items() if item is not None]
    if explode:
        return [(encoded(name), encode(scalar(item))) for item in value if item is not None]
    text = _joined(value, encode, explode=False, between=_DELIMITERS.get(style, ","))
    return [(encoded(name), text)] if text else []


def header_text(value: Any, *, explode: bool = False) -> str:
    """Return a header's value, not yet checked: `simple` is the only style that headers have."""
    return _joined(value, as_it_is, explode=explode, between=",")


def cookie_pairs(name: str, value: Any, *, explode: bool = False) -> Pairs:
    """Return the encoded pairs of a `Cookie` header."""
    return query_pairs(name, value, "form", explode=explode)


def _joined(value: Any, encode: Encode, *, explode: bool, between: str) -> str:
    """`a,b` of a list; `R,100,G,200` or (exploded) `R=100,G=200` of an object."""
    match value:
        case None:
            return ""
        case list():
            return between.join(encode(scalar(item)) for item in value if item is not None)
        case dict():
            joint = "=" if explode else between
            items = [(key, item) for key, item in value.items() if item is not None]
            return between.join(f"{encode(key)}{joint}{encode(scalar(item))}" for key, item in items)
        case _:
            return encode(scalar(value))


def _matrix(name: str, value: Any, *, explode: bool) -> str:
    match value:
        case None | []:
            return ""
        case dict() if not value:
            return ""
        case list() if explode:
            return "".join(f";{name}={encoded(scalar(item))}" for item in value if item is not None)
        case dict() if explode:
            return "".join(f";{pair}" for pair in _joined(value, encoded, explode=True, between=";").split(";"))
        case _:
            text = _joined(value, encoded, explode=False, between=",")
            return f";{name}={text}" if text else f";{name}"


def _deep(name: str, value: dict[str, Any], encode: Encode) -> Iterable[tuple[str, str]]:
    """`color[R]=100`; a list within is repeated, an object within goes one bracket deeper."""
    for key, item in value.items():
        inner = f"{name}[{key}]"
        match item:
            case None:
                continue
            case dict():
                yield from _deep(inner, item, encode)
            case list():
                yield from ((encoded(inner), encode(scalar(each))) for each in item if each is not None)
            case _:
                yield encoded(inner), encode(scalar(item))
