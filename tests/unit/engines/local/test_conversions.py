"""Arguments that become what a function's annotations ask for."""

import datetime as dt
import enum
from typing import Any

import pytest
from pydantic import BaseModel

from engines.errors import ToolFailed
from engines.local.conversions import conversions_of
from engines.tool import ErrorType


class Colour(enum.Enum):
    RED = "red"


class Place(BaseModel):
    lat: float


def paint(
    *,
    text: str,
    any_thing: Any,
    colour: Colour,
    day: dt.date,
    place: Place | None,
    pair: tuple[int, int],
    names: set[str],
) -> None:
    raise NotImplementedError


def unreadable(text: "Nowhere") -> None:  # type: ignore[name-defined]  # noqa: F821
    raise NotImplementedError


def converted(name: str, value: Any) -> Any:
    return conversions_of(paint, ["text", "any_thing", "colour", "day", "place", "pair", "names"])[name](value)


def test_only_what_json_lacks_is_converted() -> None:
    names = ["text", "any_thing", "colour", "day", "place", "pair", "names"]
    assert list(conversions_of(paint, names)) == ["colour", "day", "place", "pair", "names"]
    assert conversions_of(unreadable, ["text"]) == {}


@pytest.mark.parametrize(
    ("name", "value", "made"),
    [
        ("colour", "red", Colour.RED),
        ("day", "2024-05-01", dt.date(2024, 5, 1)),
        ("place", {"lat": 1}, Place(lat=1)),
        ("place", None, None),
        ("pair", [1, 2], (1, 2)),
        ("names", ["a", "b", "a"], {"a", "b"}),
    ],
)
def test_json_becomes_what_is_asked_for(name: str, value: Any, made: Any) -> None:
    assert converted(name, value) == made
    assert type(converted(name, value)) is type(made)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("pair", ["1", 2], r"invalid arguments: pair\.0: Input should be a valid integer"),
        ("place", {"lat": "1"}, r"invalid arguments: place\.lat: Input should be a valid number"),
        ("colour", "green", "invalid arguments: colour: Input should be 'red'"),
        ("day", 0, "invalid arguments: day: "),
    ],
)
def test_decision_7_nothing_is_coerced(name: str, value: Any, told: str) -> None:
    with pytest.raises(ToolFailed, match=told) as caught:
        converted(name, value)
    assert caught.value.error_type is ErrorType.validation
