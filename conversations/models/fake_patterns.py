"""Texts that match a regular expression: the parts of it that schemas use (classes, repeats, groups, alternatives)."""

import re
import string
from random import Random
from re import _constants as codes  # type: ignore[attr-defined]  # the one parser of patterns that Python ships
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

_FEW = 8
_PRINTABLE = string.ascii_letters + string.digits
_ANY = _PRINTABLE + " .-_"
_CATEGORIES = {
    codes.CATEGORY_DIGIT: string.digits,
    codes.CATEGORY_WORD: _PRINTABLE + "_",
    codes.CATEGORY_SPACE: " ",
    codes.CATEGORY_NOT_DIGIT: string.ascii_lowercase,
    codes.CATEGORY_NOT_WORD: "-. ",
    codes.CATEGORY_NOT_SPACE: _PRINTABLE,
}


def matching_text(pattern: str, chance: Random) -> str | None:
    """A text in which the pattern is found; None when the pattern is beyond this writer."""
    try:
        text = _written(parser.parse(pattern), chance, {})
        return text if re.search(pattern, text) else None
    except (re.error, LookupError, OverflowError, RecursionError):
        return None


def _written(nodes: Any, chance: Random, groups: dict[int, str]) -> str:
    return "".join(_node(code, argument, chance, groups) for code, argument in nodes)


def _node(code: Any, argument: Any, chance: Random, groups: dict[int, str]) -> str:
    if code is codes.LITERAL:
        return chr(argument)
    if code is codes.NOT_LITERAL:
        return chance.choice([character for character in _ANY if character != chr(argument)])
    if code is codes.ANY:
        return chance.choice(_PRINTABLE)
    if code is codes.IN:
        return chance.choice(_members(argument))
    if code is codes.BRANCH:
        return _written(chance.choice(argument[1]), chance, groups)
    if code in {codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT}:
        least, most, inner = argument
        count = chance.randint(least, min(most, least + _FEW))
        return "".join(_written(inner, chance, groups) for _ in range(count))
    if code is codes.SUBPATTERN:
        text = _written(argument[-1], chance, groups)
        groups[argument[0]] = text
        return text
    if code is codes.ATOMIC_GROUP:
        return _written(argument, chance, groups)
    if code is codes.GROUPREF:
        return groups[argument]
    return ""  # anchors and looks around: the final search tells whether they hold


def _members(items: Any) -> str:
    """All characters of a class; a negated one is taken from the printable rest."""
    negated, members = False, ""
    for code, argument in items:
        if code is codes.NEGATE:
            negated = True
        elif code is codes.LITERAL:
            members += chr(argument)
        elif code is codes.RANGE:
            low, high = argument
            members += "".join(map(chr, range(low, min(high, low + 127) + 1)))
        else:
            members += _CATEGORIES[argument]
    return "".join(character for character in _ANY if character not in members) if negated else members
