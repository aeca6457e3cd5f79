"""A request's body in its media type: JSON, a form, a multipart, text or bytes."""

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engines.errors import ToolFailed
from engines.loaders.openapi.metadata import RestBody, RestParameter
from engines.plain import compact
from engines.rest.styles import Pairs, encoded, encoded_but_reserved, query_pairs, scalar
from engines.tool import ErrorType

_JSON = re.compile(r"^(?:application/json|[^;]*\+json|\*/\*)\s*(?:;|$)", re.IGNORECASE)
_FORM = "application/x-www-form-urlencoded"
_MULTIPART = "multipart/"
_BYTES = "application/octet-stream"
# What a browser does to the name of a field in a multipart (WHATWG HTML, multipart/form-data).
_NAME_ESCAPES = str.maketrans({'"': "%22", "\r": "%0D", "\n": "%0A"})
_PLAIN_PARAMETER = RestParameter.model_validate({"name": "", "location": "body"})

Fields = Mapping[str, tuple[RestParameter, Any]]
"""Wire name → (how it is written, value)."""


@dataclass(frozen=True, slots=True)
class Content:
    """A body and its `Content-Type`."""

    type: str
    data: bytes


def content_of_fields(body: RestBody, fields: Fields) -> Content:
    """Return the body made of single fields; ToolFailed for a value that the media type cannot hold."""
    kind = body.content_type
    if _JSON.match(kind):
        return _json(kind, {name: value for name, (_, value) in fields.items()})
    if kind.startswith(_FORM):
        return Content(kind, "&".join(f"{name}={value}" for name, value in _form_pairs(fields)).encode())
    if kind.startswith(_MULTIPART):
        return _multipart(kind, fields)
    return _text(kind, {name: value for name, (_, value) in fields.items()})


def content_of_value(body: RestBody, value: Any) -> Content:
    """Return the body that one argument is; ToolFailed for a value that the media type cannot hold."""
    kind = body.content_type
    if body.base64:
        return Content(kind, bytes_of(value, body.argument or "body"))
    if _JSON.match(kind):
        return _json(kind, value)
    if isinstance(value, dict) and kind.startswith((_FORM, _MULTIPART)):
        return content_of_fields(body, {name: (_PLAIN_PARAMETER, item) for name, item in value.items()})
    return _text(kind, value)


def bytes_of(value: Any, name: str) -> bytes:
    """Return the bytes that base64 text stands for; ToolFailed when it is none."""
    try:
        return base64.b64decode(value if isinstance(value, str) else "?", validate=True)
    except (binascii.Error, ValueError) as error:
        raise ToolFailed(ErrorType.validation, f"argument {name!r}: not base64 text: {error}") from error


def json_text(value: Any) -> str:
    """Return a value as JSON; ToolFailed when it nests too deeply for that."""
    try:
        return compact(value)
    except (ValueError, RecursionError) as error:
        raise ToolFailed(ErrorType.validation, f"the arguments cannot be written as JSON: {error}") from error


def _json(kind: str, value: Any) -> Content:
    return Content("application/json" if kind.startswith("*/*") else kind, json_text(value).encode())


def _text(kind: str, value: Any) -> Content:
    return Content(kind, (value if isinstance(value, str) else json_text(value)).encode())


def _form_pairs(fields: Fields) -> Pairs:
    pairs: Pairs = []
    for name, (parameter, value) in fields.items():
        if parameter.content_type is not None and not isinstance(value, str):
            pairs.append((encoded(name), encoded(json_text(value))))
        else:
            encode = encoded_but_reserved if parameter.allow_reserved else encoded
            pairs += query_pairs(name, value, parameter.style, explode=parameter.explode, encode=encode)
    return pairs


def _multipart(kind: str, fields: Fields) -> Content:
    """Write the parts; the boundary is a digest of them, so no part can hold it."""
    parts = [part for name, (parameter, value) in fields.items() for part in _parts(name, parameter, value)]
    digest = hashlib.blake2b(digest_size=20)
    for part in parts:
        digest.update(part)
    boundary = digest.hexdigest().encode()
    data = b"".join(b"--" + boundary + b"\r\n" + part + b"\r\n" for part in parts) + b"--" + boundary + b"--\r\n"
    return Content(f"{kind.partition(';')[0]}; boundary={boundary.decode()}", data)


def _parts(name: str, parameter: RestParameter, value: Any) -> list[bytes]:
    match value:
        case None:
            return []
        case list() if parameter.content_type is None or parameter.base64:
            return [_part(name, parameter, item) for item in value if item is not None]
        case _:
            return [_part(name, parameter, value)]


def _part(name: str, parameter: RestParameter, value: Any) -> bytes:
    head = f'Content-Disposition: form-data; name="{name.translate(_NAME_ESCAPES)}"'
    kind = parameter.content_type
    if parameter.base64:
        head += f'; filename="{name.translate(_NAME_ESCAPES)}"'
        kind, data = kind or _BYTES, bytes_of(value, name)
    elif isinstance(value, dict | list):
        kind, data = kind or "application/json", json_text(value).encode()
    else:
        data = scalar(value).encode()
    if kind is not None:
        head += f"\r\nContent-Type: {kind}"
    return head.encode() + b"\r\n\r\n" + data
