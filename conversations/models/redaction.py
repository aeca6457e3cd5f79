"""Keeps secrets out of what enters an error: known values, and whatever looks like a key (rule S11)."""

import re
from collections.abc import Callable, Iterable

MASK = "***"
BODY_SHOWN_CHARS = 2_000
_SHORTEST_SECRET = 4
_LOOKS_SECRET = re.compile(
    r"(?i)\b(?:sk|pk|rk)-[A-Za-z0-9_*-]{6,}"
    r"|\b(?:bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}"
    r"|(?<=//)[^/\s:@]+:[^/\s@]+(?=@)"
    r"|(?<=api[-_]key)([\"']?\s*[=:]\s*[\"']?)[^\s\"'&,]+"
)


def redactor(secrets: Iterable[str]) -> Callable[[str], str]:
    """A function that returns its text with these secrets, and all that looks like one, masked."""
    known = sorted({secret for secret in secrets if len(secret) >= _SHORTEST_SECRET}, key=len, reverse=True)
    exact = re.compile("|".join(re.escape(secret) for secret in known)) if known else None

    def redacted(text: str) -> str:
        masked = exact.sub(MASK, text) if exact else text
        return _LOOKS_SECRET.sub(MASK, masked)

    return redacted
