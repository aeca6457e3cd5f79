"""Which values of a call nobody ever said: neither the user, nor the tool's own definition."""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from engines.enrichments.texts import properties_of
from engines.plain import compact
from engines.words import words

Place = tuple[str | int, ...]


def made_up(
    arguments: Mapping[str, Any], inputs: Mapping[str, Any], said: str, open_places: Collection[Place]
) -> Iterator[tuple[Place, Any]]:
    """Give each text and number, with its place, that is not in `said`.

    What a schema offers (enum, const, default, examples) is not made up; truth values and null never are, nor what
    stands at an open place.
    """
    spoken, known = said.casefold(), set(words(said))
    for name, argument in arguments.items():
        for place, value, schema in _values(argument, inputs.get(name), (name,)):
            if place in open_places or _is_offered(value, schema) or isinstance(value, bool) or value is None:
                continue
            text = value if isinstance(value, str) else compact(value)
            own = set(words(text))
            if not _is_in(text.casefold(), spoken) and not (own and own <= known):
                yield place, value


def _is_in(text: str, spoken: str) -> bool:
    """Whether the text stands in what was said, and not inside a longer word or number."""
    return re.search(rf"(?<!\w){re.escape(text)}(?!\w)", spoken) is not None


def _values(value: Any, schema: Any, at: Place) -> Iterator[tuple[Place, Any, Any]]:
    """Give each value that holds no others, with its place and its schema."""
    if isinstance(value, dict):
        parts = dict(properties_of(schema)) if isinstance(schema, dict) else {}
        for key, item in value.items():
            yield from _values(item, parts.get(key), (*at, key))
    elif isinstance(value, list):
        items = schema.get("items") if isinstance(schema, dict) else None
        for position, item in enumerate(value):
            yield from _values(item, items, (*at, position))
    else:
        yield at, value, schema


def _is_offered(value: Any, schema: Any) -> bool:
    if not isinstance(schema, dict):
        return False
    offered = [*(schema.get("enum") or ()), *(schema.get("examples") or ())]
    offered += [schema[key] for key in ("const", "default") if key in schema]
    return value in offered
