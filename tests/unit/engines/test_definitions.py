"""Definitions as people write them."""

from typing import Any

import pytest

from engines.errors import InvalidTool
from engines.tool import Tool

EMPTY = {"type": "object", "properties": {}}


@pytest.mark.parametrize("parameters", [{}, {"parameters": None}, {"parameters": {}}, {"parameters": EMPTY}])
def test_absent_parameters_are_the_empty_object(parameters: dict[str, Any]) -> None:
    assert Tool.from_dict({"name": "ping", **parameters}).parameters == EMPTY


def test_an_object_schema_may_leave_its_type_out() -> None:
    tool = Tool.from_dict({"name": "a", "parameters": {"properties": {"x": {}}}})
    assert tool.parameters == {"type": "object", "properties": {"x": {}}}


def test_missing_description_and_odd_names_are_fine() -> None:
    tool = Tool.from_dict({"name": "security.access audit/2", "description": None})
    assert (tool.name, tool.description, tool.namespace) == ("security.access audit/2", "", "default")


def test_an_empty_output_schema_is_none() -> None:
    assert Tool.from_dict({"name": "a", "output_parameters": {}}).output_parameters is None


def test_the_wrapping_of_chat_completions_is_taken_off() -> None:
    function = {"name": "a", "description": "d", "parameters": EMPTY, "strict": True}
    tool = Tool.from_dict({"type": "function", "function": function})
    assert (tool.name, tool.description, tool.metadata) == ("a", "d", {"strict": True})


def test_d72_the_tools_own_namespace_wins() -> None:
    assert Tool.from_dict({"name": "a", "namespace": "own"}, namespace="outer").namespace == "own"
    assert Tool.from_dict({"name": "own::a"}, namespace="outer").qualified_name == "own::a"
    assert Tool.from_dict({"name": "a"}, namespace="outer").namespace == "outer"


@pytest.mark.parametrize(
    ("definition", "cause"),
    [
        ([], "a tool definition is an object, got list"),
        ({}, "a tool needs a name"),
        ({"name": 7}, "a tool needs a name .* got 7"),
        ({"name": "a", "paramaters": {}}, "tool 'a': unknown key 'paramaters'; did you mean 'parameters'"),
        ({"name": "a", "parameters": "none"}, "tool 'a': parameters must be a JSON Schema object, got str"),
        ({"name": "a", "parameters": {"type": "string"}}, "tool 'a': parameters must be of type object, got 'string'"),
        ({"name": "a", "parameters": {"city": {"type": "string"}}}, "put the parameters under `properties`"),
        ({"name": "a", "description": ["x"]}, "tool 'a': description must be text, got list"),
        ({"name": "a", "metadata": "x"}, "tool 'a': metadata must be an object, got str"),
        ({"name": "a", "namespace": ""}, "tool 'a': a namespace is text"),
    ],
)
def test_a_bad_definition_names_the_tool_and_the_cause(definition: Any, cause: str) -> None:
    with pytest.raises(InvalidTool, match=cause):
        Tool.from_dict(definition)
