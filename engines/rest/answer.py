"""What the answer to a request makes of a call: its result, or a failure that says whether to ask again (rule D58)."""

from typing import Any, NoReturn

from engines.errors import ToolFailed
from engines.network.failures import FailureKind, NetworkFailure
from engines.network.retry_after import asked_wait_seconds
from engines.rest.content import value_of
from engines.tool import ErrorType

SHOWN_CHARS = 200

_SHOWN_BYTES = 4 * SHOWN_CHARS
_FIRST_REDIRECT, _FIRST_ERROR = 300, 400
_PERMISSION = frozenset({401, 403, 407})
_TIMEOUT = frozenset({408, 504})
# The server's trouble and not the call's, except where it says that it will never know how.
_MAY_PASS = frozenset({408, 425, 429, 500, 502, 503, 504, 507, 529})


def value_or_failure(
    status: int, body: bytes, *, content_type: str, retry_after: str | None, date: str | None, now: float
) -> Any:
    """Return what a 2xx says; ToolFailed `HTTP <code>: <first 200 characters>` for any other status."""
    if status < _FIRST_REDIRECT:
        return value_of(body, content_type)
    if status < _FIRST_ERROR:
        message = f"HTTP {status}: the server answers with a redirect, which is not followed"
        raise ToolFailed(ErrorType.execution, message)
    raise ToolFailed(
        _type_of(status),
        f"HTTP {status}: {shown(body)}",
        may_pass=status in _MAY_PASS,
        retry_after_seconds=asked_wait_seconds(retry_after=retry_after, date=date, now=now),
    )


def shown(body: bytes) -> str:
    """Return the first 200 characters of a body, for a message."""
    return body[:_SHOWN_BYTES].decode("utf-8", "replace")[:SHOWN_CHARS]


def raise_failed(failure: NetworkFailure) -> NoReturn:
    """Raise what a request without an answer is to its call; only what may pass is tried again."""
    match failure.kind:
        case FailureKind.timeout:
            # The time is used up, and a server that is too slow once is too slow again.
            raise ToolFailed(ErrorType.timeout, failure.message) from failure
        case FailureKind.refused_address | FailureKind.refused_request:
            raise ToolFailed(ErrorType.permission, failure.message) from failure
        case FailureKind.too_large:
            raise ToolFailed(ErrorType.unparseable_result, failure.message) from failure
        case _:
            raise ToolFailed(ErrorType.network, failure.message, may_pass=failure.may_pass) from failure


def _type_of(status: int) -> ErrorType:
    if status in _PERMISSION:
        return ErrorType.permission
    if status in _TIMEOUT:
        return ErrorType.timeout
    return ErrorType.network if status in _MAY_PASS else ErrorType.execution
