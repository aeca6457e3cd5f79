"""Plain JSON."""

import dataclasses
import datetime as dt
import enum
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from pydantic import BaseModel

from engines.plain import as_json, canonical, compact, copied, text_of
from tests.unit.engines.test_tool import values


class Colour(enum.Enum):
    red = "red"


class Model(BaseModel):
    day: dt.date


@dataclasses.dataclass
class Point:
    x: int


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        ((1, 2), [1, 2]),
        ({1: "a"}, {"1": "a"}),
        (Colour.red, "red"),
        (Point(3), {"x": 3}),
        (Model(day=dt.date(2024, 5, 1)), {"day": "2024-05-01"}),
        ({"when": dt.datetime(2024, 5, 1, tzinfo=dt.UTC)}, {"when": "2024-05-01T00:00:00+00:00"}),
        ({3, 1}, [1, 3]),
        (b"text", "text"),
        (10**30, 10**30),
        ({"big": [10**30, Point(1)]}, None),
    ],
)
def test_values_of_python_become_json(value: Any, plain: Any) -> None:
    if plain is None:
        with pytest.raises(TypeError):
            as_json(value)
    else:
        assert as_json(value) == plain


@pytest.mark.parametrize("value", [object(), {"x": Decimal(1)}, [print]])
def test_what_has_no_json_form_is_a_type_error(value: Any) -> None:
    with pytest.raises(TypeError):
        as_json(value)


@given(values)
def test_json_stays_itself(value: Any) -> None:
    assert as_json(value) == value
    assert copied(value) == value


def test_a_copy_shares_nothing() -> None:
    value: dict[str, Any] = {"a": [{"b": 1}]}
    copy = copied(value)
    copy["a"][0]["b"] = 2
    assert value == {"a": [{"b": 1}]}


def test_texts() -> None:
    assert text_of("as it is") == "as it is"
    assert text_of({"b": 1, "a": "é"}) == '{"b":1,"a":"é"}'
    assert canonical({"b": 1, "a": 2}) == '{"a":2,"b":1}'
    assert compact(10**30) == str(10**30)
