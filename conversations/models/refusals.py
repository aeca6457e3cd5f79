"""Which error an HTTP status means: a table and a few words that servers use."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import orjson

from conversations.errors import (
    AuthenticationFailed,
    ContextOverflow,
    ModelError,
    ModelRefusedRequest,
    ModelTimeout,
    ModelUnavailable,
    RateLimited,
)
from conversations.models.redaction import BODY_SHOWN_CHARS

_MESSAGE_SHOWN_CHARS = 300
_SERVER_FAULTS = 500
_REDIRECTS = range(300, 400)
_BY_STATUS: Mapping[int, type[ModelError]] = MappingProxyType(
    {
        401: AuthenticationFailed,
        403: AuthenticationFailed,
        408: ModelTimeout,
        409: ModelUnavailable,
        413: ContextOverflow,
        425: ModelUnavailable,
        429: RateLimited,
        504: ModelTimeout,
    }
)
_OVERFLOW_WORDS = (
    "context_length_exceeded",
    "context length",
    "context window",
    "context size",
    "maximum model length",
    "max_model_len",
    "prompt is too long",
    "input is too long",
    "too many tokens",
    "reduce the length",
)
_SPENT_WORDS = ("insufficient_quota", "billing_hard_limit", "exceeded your current quota")


def error_of_status(
    status: int, body: str, *, place: str, retry_after_seconds: float | None, redact: Callable[[str], str]
) -> ModelError:
    """The typed error for a reply that is no 200; `place` names model and server."""
    shown = redact(body)[:BODY_SHOWN_CHARS]
    said = redact(_server_message(body)).strip()[:_MESSAGE_SHOWN_CHARS]
    kind, way_out = _kind_of(status, body.lower())
    message = f"{place}: HTTP {status}" + (f": {said}" if said else "") + (f" ({way_out})" if way_out else "")
    return kind(
        message,
        status=status,
        body=shown,
        retry_after_seconds=retry_after_seconds if kind is not ContextOverflow else None,
    )


def _kind_of(status: int, body: str) -> tuple[type[ModelError], str]:
    if status in _REDIRECTS:
        return ModelRefusedRequest, "redirects are not followed; set base_url to where the server really is"
    if status in {400, 413, 422} and any(word in body for word in _OVERFLOW_WORDS):
        return ContextOverflow, "shorten the conversation or use a model with a larger context window"
    if status == 429 and any(word in body for word in _SPENT_WORDS):  # noqa: PLR2004
        return ModelRefusedRequest, "the account's quota is spent"
    kind = _BY_STATUS.get(status, ModelUnavailable if status >= _SERVER_FAULTS else ModelRefusedRequest)
    return kind, "check api_key and what it may use" if kind is AuthenticationFailed else ""


def _server_message(body: str) -> str:
    """The message inside the usual error bodies; else the body itself."""
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        return body
    for key in ("error", "message", "detail"):
        if isinstance(found, dict) and key in found:
            found = found[key]
    return found if isinstance(found, str) else _compact(found)


def _compact(value: Any) -> str:
    return orjson.dumps(value).decode()
