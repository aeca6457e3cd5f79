"""How long a server asks to be left alone: `Retry-After`, in seconds or as a date (RFC 9110, 10.2.3)."""

import math
from datetime import UTC
from email.utils import parsedate_to_datetime


def asked_wait_seconds(retry_after: str | None, *, date: str | None, now: float) -> float | None:
    """Return the wait in seconds, never negative; None when the server does not say or says nonsense.

    An HTTP date is compared with the server's own `Date`, if it sent one, so that skewed clocks do no harm.
    """
    if not retry_after:
        return None
    try:
        seconds = float(retry_after)
    except ValueError:
        due = _moment(retry_after)
        return None if due is None else max(0.0, due - (_moment(date) or now))
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _moment(text: str | None) -> float | None:
    try:
        moment = parsedate_to_datetime(text or "")
    except (ValueError, TypeError, OverflowError):
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
