"""Descriptions: what a model reads of somebody else's document, without control characters and bounded in length."""

import re
from typing import Any

MOST_CHARS_OF_A_TOOL = 1024  # What providers take.
MOST_CHARS_OF_A_SCHEMA = 512

# Control characters, zero-width ones, marks that turn the direction of text, and the "tags" that nobody sees.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\U000e0000-\U000e007f]"
)
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_SPACES = re.compile(r"[ \t]+")
_EMPTY_LINES = re.compile(r"\n{3,}")


def description(*written: Any, most_chars: int) -> str:
    """Join the texts by lines, each said once, cut at a word with `…` when they are too long."""
    said: list[str] = []
    for each in written:
        text = _clean(each) if isinstance(each, str) else ""
        if text and not any(text in other for other in said):
            said = [other for other in said if other not in text]
            said.append(text)
    return _capped("\n".join(said), most_chars)


def _clean(text: str) -> str:
    text = _UNSEEN.sub("", _ANSI.sub("", text[:65_536]).replace("\r\n", "\n"))
    return _EMPTY_LINES.sub("\n\n", _SPACES.sub(" ", text)).strip()


def _capped(text: str, most_chars: int) -> str:
    if len(text) <= most_chars:
        return text
    head = text[: most_chars - 1]
    at_a_word = head.rsplit(maxsplit=1)[0] if head and not text[most_chars - 1].isspace() else head
    return (at_a_word if len(at_a_word) > most_chars // 2 else head).rstrip() + "…"
