"""How long a server asks us to wait: `retry-after-ms`, `Retry-After` in seconds or as a date (RFC 9110, 10.2.3)."""

import math
from datetime import UTC
from email.utils import parsedate_to_datetime


def asked_wait_seconds(
    *, retry_after_ms: str | None = None, retry_after: str | None, date: str | None, now: float
) -> float | None:
    """The wait in seconds, never negative; None when the server does not say or says nonsense.

    An HTTP date is compared with the server's own `Date`, if it sent one, so that skewed clocks do no harm.
    """
    milliseconds = _number(retry_after_ms)
    if milliseconds is not None:
        return milliseconds / 1000
    seconds = _number(retry_after)
    if seconds is not None:
        return seconds
    due = _moment(retry_after)
    if due is None:
        return None
    return max(0.0, due - (_moment(date) or now))


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text else math.nan
    except ValueError:
        return None
    return max(0.0, value) if math.isfinite(value) else None


def _moment(text: str | None) -> float | None:
    if not text:
        return None
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
