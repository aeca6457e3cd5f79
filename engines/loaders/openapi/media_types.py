"""Which of the media types of a body or a response is the one to speak."""

import re
from collections.abc import Iterable

from engines.plain import JSONObject

FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"

_JSON = re.compile(
    r"(?i)^(?:application|text)/(?:json|[\w.+-]*\+json)\s*(?:;|$)|^(?:application/)?\*(?:/\*)?\s*(?:;|$)"
)
_TEXT = re.compile(r"(?i)^text/|^application/(?:[\w.-]*\+)?(?:xml|yaml|javascript|graphql|x-ndjson)")


def is_json(media_type: str) -> bool:
    """Whether values of this type are JSON; a type that stands for all of them is taken as JSON too."""
    return bool(_JSON.match(media_type))


def is_text(media_type: str) -> bool:
    """Whether values of this type are text that a model can write."""
    return bool(_TEXT.match(media_type))


def best(content: JSONObject) -> str | None:
    """Return the media type to send: JSON, else a form, else a multipart, else text, else the first."""
    return next(iter(sorted(content, key=_rank)), None)


def first_json(media_types: Iterable[str]) -> str | None:
    """Return the first that is JSON."""
    return next(filter(is_json, media_types), None)


def spelled(media_type: str) -> str:
    """Return a type to be written into a header: `*/*` is no type of anything."""
    return "application/json" if "*" in media_type and is_json(media_type) else media_type


def _rank(media_type: str) -> int:
    lower = media_type.lower()
    if is_json(media_type):
        return 0 if "*" not in media_type else 1
    if lower.startswith(FORM):
        return 2
    if lower.startswith(MULTIPART):
        return 3
    return 4 if is_text(media_type) else 5
