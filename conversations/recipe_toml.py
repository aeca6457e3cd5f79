"""Reads TOML; the standard parser keeps no positions, so the lines of keys are found by a second look at the text."""

import re
from collections.abc import Iterator
from typing import Any

from conversations.errors import RecipeInvalid
from conversations.places import Place
from conversations.recipe_source import Position, RecipeSource, plain_scalar
from engines.loaders.toml_text import parsed_toml

_TABLE = re.compile(r"\s*(?P<many>\[)?\[(?P<key>[^\[\]]+)\]")
_PART = r"(?:\"[^\"]*+\"|'[^']*+'|[A-Za-z0-9_\-]++)"
# Possessive throughout: with a way back, a line of 4,000 blanks costs 16 seconds.
_ASSIGNMENT = re.compile(rf"\s*+(?P<key>{_PART}(?:\s*+\.\s*+{_PART})*+)\s*+=\s*+(?=\S)")
_KEY_PART = re.compile(r"\"([^\"]*)\"|'([^']*)'|([A-Za-z0-9_\-]+)")
_INLINE_KEY = re.compile(r"(?:[{,]\s*)(?P<key>\"[^\"]*\"|'[^']*'|[A-Za-z0-9_\-]+)\s*=")
_ERROR_PLACE = re.compile(r" \(at line (\d+), column (\d+)\)$")
_LONG_STRINGS = ('"""', "'''")


def read_toml(text: str, file: str) -> RecipeSource:
    """The document; RecipeInvalid says where it is wrong."""
    try:
        data = parsed_toml(text)
    except (RecursionError, ValueError) as error:
        found = _ERROR_PLACE.search(str(error))
        line, column = (int(found[1]), int(found[2])) if found else (0, 0)
        message = _ERROR_PLACE.sub("", str(error))
        raise RecipeInvalid(f"not valid TOML: {message}", file=file, line=line, column=column) from None
    keys: dict[Place, Position] = {}
    values: dict[Place, Position] = {}
    for place, key_position, value_position in _places(text):
        keys.setdefault(place, key_position)
        values.setdefault(place, value_position)
    source = RecipeSource(file, {}, keys, values)
    return RecipeSource(file, _plain(data, (), source), keys, values)


def _plain(value: Any, at: Place, source: RecipeSource) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item, (*at, key), source) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item, (*at, index), source) for index, item in enumerate(value)]
    try:
        return plain_scalar(value)
    except ValueError as error:
        raise source.invalid(at, str(error)) from None


def _places(text: str) -> Iterator[tuple[Place, Position, Position]]:
    """The path of each table, key and key of an inline table, with its position; a wrong guess does no harm."""
    table: Place = ()
    counts: dict[Place, int] = {}
    closing = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if closing:
            closing = "" if closing in line else closing
            continue
        if header := _TABLE.match(line):
            table = _table_place(_parts(header["key"]), counts, is_many=bool(header["many"]))
            at = Position(number, header.start("key") + 1)
            yield table, at, at
        elif assignment := _ASSIGNMENT.match(line):
            place = (*table, *_parts(assignment["key"]))
            yield place, Position(number, assignment.start("key") + 1), Position(number, assignment.end() + 1)
            for inline in _INLINE_KEY.finditer(line, assignment.end()):
                at = Position(number, inline.start("key") + 1)
                yield (*place, *_parts(inline["key"])), at, Position(number, inline.end() + 2)
            closing = next((mark for mark in _LONG_STRINGS if line.count(mark) % 2), "")


def _table_place(parts: tuple[str, ...], counts: dict[Place, int], *, is_many: bool) -> Place:
    """The path of a table; `[[name]]` and tables below it carry the index of the element they stand in."""
    place: Place = ()
    for depth, part in enumerate(parts):
        place = (*place, part)
        if is_many and depth == len(parts) - 1:
            counts[place] = counts.get(place, -1) + 1
        if place in counts:
            place = (*place, counts[place])
    return place


def _parts(key: str) -> tuple[str, ...]:
    return tuple(match[1] or match[2] or match[3] or "" for match in _KEY_PART.finditer(key))
