"""Overloads as one definition: whatever fits one of them fits what the model is shown (rule D69)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.wire.overloads import merged_description, merged_parameters
from engines.schemas import compiled
from engines.tool import Tool


def overload(description: str = "", required: tuple[str, ...] = (), **properties: Any) -> Tool:
    schema = {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}
    return Tool("get", "w", description, schema)


def test_d69_the_description_says_which_arguments_go_together() -> None:
    by_city, by_place = overload("By city.", ("city",), city={}), overload("By place.", ("lat", "lon"), lat={}, lon={})
    assert merged_description([by_city, by_place]) == ("By city.\nor: By place.\nNeeded arguments: city; or lat, lon.")
    assert (
        merged_description([overload("One.", ("a",), a={}), overload("Two.", ("a",), a={}, b={})]) == "One.\nor: Two."
    )
    assert merged_description([overload("", ("a",), a={}), overload("", (), b={})]) == (
        "Needed arguments: a; or nothing."
    )


def with_definitions(kind: str) -> Tool:
    node = {"type": "object", "properties": {"value": {"type": kind}, "next": {"$ref": "#/$defs/Node"}}}
    schema = {
        "type": "object",
        "properties": {
            kind: {"$ref": "#/$defs/Node"},
            f"{kind}s": {"items": {"$ref": "#/$defs/Node/properties/value"}},
        },
        "$defs": {"Node": node},
    }
    return Tool("get", "w", parameters=schema)


def test_d69_definitions_of_one_name_stay_apart() -> None:
    tools = [with_definitions("string"), with_definitions("integer")]
    before = [dict(tool.parameters) for tool in tools]
    validator = compiled(merged_parameters(tools))
    assert validator.is_valid({"string": {"value": "x", "next": {"value": "y"}}, "integers": [1]})
    assert validator.is_valid({"integer": {"value": 1, "next": {"value": 2}}, "strings": ["x"]})
    for wrong in (
        {"string": {"value": 1}},
        {"integer": {"value": "x"}},
        {"integer": {"next": {"value": "x"}}},
        {"integers": ["x"]},
    ):
        assert not validator.is_valid(wrong)
    assert [tool.parameters for tool in tools] == before


def test_d69_what_no_overload_takes_is_not_offered() -> None:
    tools = [overload(a={"type": "string"}), overload(b={"type": "string"})]
    assert not compiled(merged_parameters(tools)).is_valid({"c": 1})
    open_one = Tool("get", "w", parameters={"type": "object", "properties": {"d": {}}})
    assert compiled(merged_parameters([*tools, open_one])).is_valid({"c": 1})


TYPES = st.sampled_from([{"type": "string"}, {"type": "integer"}, {"type": "boolean"}, {"enum": ["x", 1]}])
OVERLOADS = st.dictionaries(st.sampled_from("abcd"), TYPES, max_size=3).flatmap(
    lambda properties: st.builds(
        lambda required: overload("", tuple(sorted(required)), **properties),
        st.sets(st.sampled_from(sorted(properties))) if properties else st.just(set()),
    )
)
ARGUMENTS = st.dictionaries(st.sampled_from("abcd"), st.sampled_from(["x", "y", 1, True, None]), max_size=4)


@given(st.lists(OVERLOADS, min_size=2, max_size=4), ARGUMENTS)
def test_d69_whatever_fits_an_overload_fits_the_merged_schema(tools: list[Tool], arguments: dict[str, Any]) -> None:
    if any(compiled(tool.parameters).is_valid(arguments) for tool in tools):
        assert compiled(merged_parameters(tools)).is_valid(arguments)


@pytest.mark.parametrize("key", ["$defs", "definitions"])
def test_d69_a_single_set_of_definitions_keeps_its_names(key: str) -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": f"#/{key}/A"}}, key: {"A": {"type": "string"}}}
    merged = merged_parameters([Tool("get", "w", parameters=schema), overload(b={})])
    assert merged[key] == {"A": {"type": "string"}}
    assert merged["properties"]["a"] == {"$ref": f"#/{key}/A"}
