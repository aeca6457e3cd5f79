"""Text from a foreign server made fit to be shown: no control characters, no marks that reorder it, bounded."""

import unicodedata

_KEPT = {"\n", "\t"}
_CUT = "…"


def printable(text: str, max_chars: int) -> str:
    """Return the text without control and format characters (ANSI's escapes, bidi marks), at most `max_chars` long."""
    # Cut before looking at each character: a description of 10 MB is cut, not read.
    head = text[: 2 * max_chars]
    clean = head if head.isascii() and head.isprintable() else "".join(filter(_is_shown, head))
    if len(clean) <= max_chars and len(text) <= 2 * max_chars:
        return clean
    return clean[: max_chars - 1] + _CUT


def _is_shown(character: str) -> bool:
    # Control, format (zero width, bidi, tags), half a surrogate pair, private use, line and paragraph separators.
    return character in _KEPT or unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
