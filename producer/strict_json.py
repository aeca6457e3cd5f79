"""Parses JSON from strangers: refuses what parsers disagree about, and says where it stands."""

import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

MAX_DEPTH = 64
_SMALLEST_INTEGER, _LARGEST_INTEGER = -(2**63), 2**64 - 1
_STRUCTURE = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[\]{}]', re.DOTALL)
_SPACE = re.compile(r"[ \t\r\n]*")
_SCALAR = re.compile(r"[^,\]}\s]+")
_SHOWN_CHARACTERS = 40

Path = tuple[str | int, ...]


class StrictJSONError(ValueError):
    """The text is not JSON that every parser reads the same way; `offset` counts characters from 0."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


def parse_strict(text: str) -> Any:
    """Parse `text`; duplicate keys, NaN, numbers that would change, lone surrogates and deep nesting are errors."""
    _refuse_depth(text)
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise StrictJSONError(_plain_cause(error), error.pos) from None
    except _DuplicateKey as error:
        raise StrictJSONError(f"the key {_shown(error.key)} stands twice in one object", _second_offset(text)) from None
    except _BadNumber as error:
        raise StrictJSONError(error.args[0], max(text.find(error.token), 0)) from None
    if "\\u" in text:
        _refuse_lone_surrogates(text)
    return value


def offset_of(text: str, path: Sequence[str | int]) -> int:
    """Where the value at `path` stands (its key, in an object); the nearest parent that exists, when it does not."""
    wanted = tuple(path)
    best, best_length = 0, -1
    for found, offset in _walk(text, _skip_space(text, 0), ()):
        if len(found) > best_length and found == wanted[: len(found)]:
            best, best_length = offset, len(found)
    return best


class _DuplicateKey(Exception):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


class _BadNumber(Exception):
    def __init__(self, message: str, token: str) -> None:
        super().__init__(message)
        self.token = token


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _DuplicateKey(key)
            seen.add(key)
    return result


def _integer(token: str) -> int:
    if len(token) <= len(str(_LARGEST_INTEGER)) and _SMALLEST_INTEGER <= int(token) <= _LARGEST_INTEGER:
        return int(token)
    message = f"the number {_shown(token)} does not fit in 64 bits; write it as a string"
    raise _BadNumber(message, token)


def _float(token: str) -> float:
    value = float(token)
    if math.isinf(value):
        message = f"the number {_shown(token)} is too large for a float; write it as a string"
        raise _BadNumber(message, token)
    return value


def _constant(token: str) -> NoReturn:
    message = f"{token} is not JSON; use null, or leave the key out"
    raise _BadNumber(message, token)


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_constant)

_PLAIN_DECODER = json.JSONDecoder()


def _refuse_depth(text: str) -> None:
    """Check the nesting before anything recursive sees the text."""
    if text.count("{") + text.count("[") <= MAX_DEPTH:
        return
    depth = 0
    for match in _STRUCTURE.finditer(text):
        character = match.group()[0]
        if character in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                message = f"nested deeper than {MAX_DEPTH} levels"
                raise StrictJSONError(message, match.start())
        elif character in "]}":
            depth -= 1


def _refuse_lone_surrogates(text: str) -> None:
    for match in re.finditer(r'"(?:[^"\\]|\\.)*"', text, re.DOTALL):
        value, _ = _string(text, match.start())
        if any("\ud800" <= character <= "\udfff" for character in value):
            message = "half of a surrogate pair (\\ud800-\\udfff): the text is not valid Unicode"
            raise StrictJSONError(message, match.start())


def _plain_cause(error: json.JSONDecodeError) -> str:
    if error.doc.lstrip()[:1] not in "{[":
        return "not a JSON object"
    cause = error.msg[0].lower() + error.msg[1:]
    if error.pos >= len(error.doc.rstrip()):
        return f"the JSON ends too early ({cause})"
    return f"not valid JSON: {cause}"


def _second_offset(text: str) -> int:
    seen: set[Path] = set()
    for path, offset in _walk(text, _skip_space(text, 0), ()):
        if path in seen:
            return offset
        seen.add(path)
    return 0


def _skip_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _walk(text: str, position: int, path: Path) -> Iterator[tuple[Path, int]]:
    """Every path of a valid JSON text with its offset; a member of an object stands where its key does."""
    if not path:
        yield path, position
    yield from _members(text, position, path)


def _members(text: str, position: int, path: Path) -> Iterator[tuple[Path, int]]:
    """The paths below the value at `position`."""
    opening = text[position]
    if opening not in "{[":
        return
    position = _skip_space(text, position + 1)
    index = 0
    while text[position] not in "}]":
        start = position
        step: str | int = index
        if opening == "{":
            step, position = _string(text, position)
            position = _skip_space(text, _skip_space(text, position) + 1)
        here = (*path, step)
        yield here, start
        yield from _members(text, position, here)
        position = _skip_space(text, _end(text, position))
        if text[position] == ",":
            position = _skip_space(text, position + 1)
        index += 1


def _string(text: str, position: int) -> tuple[str, int]:
    """The string that starts at `position`, and the offset just behind it."""
    value, end = _PLAIN_DECODER.raw_decode(text, position)
    return str(value), end


def _end(text: str, position: int) -> int:
    """The offset just behind the value that starts at `position`."""
    if text[position] == '"':
        return _string(text, position)[1]
    if text[position] not in "{[":
        match = _SCALAR.match(text, position)
        return match.end() if match else position + 1
    depth = 0
    for match in _STRUCTURE.finditer(text, position):
        character = match.group()[0]
        depth += (character in "[{") - (character in "]}")
        if depth == 0:
            return match.end()
    return len(text)


def _shown(token: str) -> str:
    cut = token if len(token) <= _SHOWN_CHARACTERS else token[:_SHOWN_CHARACTERS] + "…"
    return repr(cut)
