"""Which HTTP header names and values may leave this process (rule S6)."""

import re

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}")
# Visible ASCII, space and tab inside; no control characters, and nothing that becomes one when it is cut to a byte.
_VALUE = re.compile(r"(?:[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?)?")
_LONGEST_VALUE = 16_384
_OURS = "decides how the request is framed or routed; Parley sets it itself"

# Hop-by-hop headers (RFC 9110, 7.6.1) and those that say where a request ends and whom it is for.
FRAMING_HEADERS = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "http2-settings",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
# What says who is asking and on whose behalf: for the configuration alone, never for the arguments of a call.
IDENTITY_HEADERS = frozenset({"authorization", "cookie", "forwarded", "via", "x-real-ip"})


def header_problem(name: str, value: str) -> str | None:
    """Return why a header must not be sent, without its value; None when it may be."""
    if not _TOKEN.fullmatch(name):
        return f"{name[:60]!r} is no header name"
    if name.lower() in FRAMING_HEADERS:
        return f"the header {name!r} {_OURS}"
    if len(value) > _LONGEST_VALUE:
        return f"the value of the header {name!r} is longer than {_LONGEST_VALUE:,} characters"
    if not _VALUE.fullmatch(value):
        return f"the value of the header {name!r} holds characters other than visible ASCII, or spaces at an end"
    return None


def is_for_configuration_only(name: str) -> bool:
    """Whether a call's arguments must never set this header, whatever an API description says."""
    lower = name.lower()
    return lower in FRAMING_HEADERS or lower in IDENTITY_HEADERS or lower.startswith(("x-forwarded-", "proxy-", "sec-"))
