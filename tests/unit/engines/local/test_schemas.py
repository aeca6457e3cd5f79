"""A function's signature and docstring as a tool (rule A21)."""

import enum
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal, Required, TypedDict

import pytest
from pydantic import BaseModel, Field

from engines.errors import InvalidTool
from engines.local.context import Context
from engines.local.declared import tool
from engines.local.schemas import is_plain, tool_of
from engines.schemas import compiled
from engines.tool import Tool


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Place(BaseModel):
    lat: float
    lon: float


@dataclass
class Route:
    places: list[Place]
    km: float = 0


class Reading(TypedDict):
    degrees: float


def weather(
    city: str,
    day: date,
    title: str = "",
    schema: Literal["short", "long"] = "short",
    place: Place | None = None,
    *,
    limit: Annotated[int, Field(ge=1, description="its own words")] = 5,
) -> Reading:
    """Tells the weather.

    Args:
        city: Which city.
        limit: not these
    """
    raise NotImplementedError


def test_a21_a_signature_becomes_a_schema() -> None:
    made = tool_of(weather, namespace="w")
    assert made == Tool(
        "weather",
        "w",
        "Tells the weather.",
        {
            "$defs": {
                "Place": {
                    "type": "object",
                    "properties": {"lat": {"type": "number"}, "lon": {"type": "number"}},
                    "required": ["lat", "lon"],
                }
            },
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "Which city."},
                "day": {"type": "string", "format": "date"},
                "title": {"type": "string", "default": ""},
                "schema": {"type": "string", "enum": ["short", "long"], "default": "short"},
                "place": {"anyOf": [{"$ref": "#/$defs/Place"}, {"type": "null"}], "default": None},
                "limit": {"type": "integer", "minimum": 1, "default": 5, "description": "its own words"},
            },
            "required": ["city", "day"],
            "additionalProperties": False,
        },
        {"type": "object", "properties": {"degrees": {"type": "number"}}, "required": ["degrees"]},
    )
    compiled(made.parameters)


def enumerated(colour: Colour = Colour.RED) -> Route:
    raise NotImplementedError


def test_a21_enums_and_dataclasses_have_their_json_forms() -> None:
    made = tool_of(enumerated, namespace="w")
    assert made.parameters["$defs"]["Colour"] == {"type": "string", "enum": ["red", "blue"]}
    assert made.parameters["properties"]["colour"]["default"] == "red"
    assert made.output_parameters is not None
    assert made.output_parameters["properties"].keys() == {"places", "km"}


def unannotated(a, b=1, context=None) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    raise NotImplementedError


def test_a21_a_function_without_annotations_takes_anything() -> None:
    made = tool_of(unannotated, namespace="w")
    assert made.parameters["properties"] == {"a": {}, "b": {"default": 1}}
    assert made.parameters["required"] == ["a"]
    assert made.output_parameters is None


NO_JSON = object()


def defaults(a: Any = NO_JSON, b: Callable[[], int] | None = None) -> None:
    raise NotImplementedError


def test_a21_what_has_no_json_form_is_an_error_or_left_out() -> None:
    with pytest.raises(InvalidTool, match=r"function .*defaults: .*; annotate it with types that have a JSON form"):
        tool_of(defaults, namespace="w")

    def odd_default(a: Any = NO_JSON) -> None:
        raise NotImplementedError

    assert tool_of(odd_default, namespace="w").parameters["properties"] == {"a": {}}


@tool(name="other", description="other words", parameters={"type": "object", "properties": {"x": {}}}, strict=True)
def declared(context: Context) -> None:
    """Not these."""


def test_a21_a_declaration_is_over_signature_and_docstring() -> None:
    made = tool_of(declared, namespace="w")
    assert made.to_dict() == {
        "name": "w::other",
        "description": "other words",
        "parameters": {"type": "object", "properties": {"x": {}}},
        "metadata": {"strict": True},
    }


def test_a21_every_made_tool_round_trips_through_json() -> None:
    for function in (weather, enumerated, unannotated, declared):
        made = tool_of(function, namespace="w")
        assert Tool.from_dict(json.loads(json.dumps(made.to_dict()))) == made


def titled(options: dict[str, str] = {"title": "kept"}) -> None:  # noqa: B006  # never changed
    raise NotImplementedError


def test_a21_data_in_a_schema_is_left_alone() -> None:
    assert tool_of(titled, namespace="w").parameters["properties"]["options"]["default"] == {"title": "kept"}


class Stop(TypedDict, total=False):
    name: Required[str]
    next: "Stop"
    tags: list[Reading] | None


def typed(stops: list[Stop], by_name: dict[str, Annotated[Reading, Field(description="r")]]) -> Stop | None:
    raise NotImplementedError


def test_a21_typed_dicts_keep_what_is_required_and_may_hold_themselves() -> None:
    made = tool_of(typed, namespace="w")
    validator = compiled(made.parameters)
    fine = {"stops": [{"name": "a", "next": {"name": "b"}, "tags": [{"degrees": 1}]}], "by_name": {"x": {"degrees": 2}}}
    assert validator.is_valid(fine)
    assert made.parameters["$defs"]["Stop"]["required"] == ["name"]
    assert "default" not in json.dumps(made.parameters)
    wrong: list[dict[str, Any]] = [{"stops": [{}], "by_name": {}}, {"stops": [], "by_name": {"x": {}}}]
    for broken in wrong:
        assert not validator.is_valid(broken)


@pytest.mark.parametrize(
    ("annotation", "plain"),
    [
        (str, True),
        (Any, True),
        (dict, True),
        (list[dict[str, Any]], True),
        (int | None, True),
        (Literal["a", 1], True),
        (Annotated[int, Field(ge=1)], True),
        (Sequence[Mapping[str, float]], True),
        (Reading, True),
        (date, False),
        (Colour, False),
        (Literal[Colour.RED], False),
        (list[Place], False),
        (Route | None, False),
        (tuple[int, int], False),
        (set[str], False),
    ],
)
def test_plain_annotations_need_no_conversion(annotation: Any, plain: bool) -> None:
    assert is_plain(annotation) is plain
