"""A recipe's text as plain JSON, together with the line and column of each key."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from conversations.errors import RecipeInvalid
from conversations.messages import JSONObject
from conversations.places import Place, followed, written


class Position(NamedTuple):
    """Where something stands; both count from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class RecipeSource:
    """What a file says, before anybody asks whether it makes sense."""

    file: str
    data: JSONObject
    keys: Mapping[Place, Position]
    values: Mapping[Place, Position]

    def position(self, place: Place, *, of_key: bool = False) -> Position:
        """Where the value (or its key) stands; for what is not in the file, where its nearest parent stands."""
        known = self.keys if of_key else self.values
        while place and place not in known:
            place, known = place[:-1], self.keys
        return known.get(place, Position(1, 1))

    def _is_block(self, place: Place) -> bool:
        depth, value = followed(self.data, place)
        return depth == len(place) and (value is None or isinstance(value, dict | list))

    def invalid(self, place: Place, message: str, *, hint: str = "", of_key: bool = False) -> RecipeInvalid:
        """The error `file:line:column: path: message; hint`; about a whole block it stands at the block's key."""
        at = self.position(place, of_key=of_key or self._is_block(place))
        said = f"{written(place)}: {message}" if place else message
        return RecipeInvalid(said, file=self.file, line=at.line, column=at.column, hint=hint)


def plain_scalar(value: Any) -> Any:
    """A parser's value as a JSON value; ValueError for what JSON cannot hold."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} is no number that JSON can hold")
        return float(value)
    if hasattr(value, "isoformat"):
        return str(value.isoformat())  # a date without quotes: people mean the text
    raise ValueError(f"a {type(value).__name__} has no place in a recipe")
