"""Tools, calls and results: their names, and their way through JSON and back."""

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.errors import InvalidTool
from engines.tool import ErrorType, Tool, ToolCall, ToolResult

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
namespaces = names.filter(lambda text: "::" not in text and not text.endswith(":"))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(), values, max_size=4)
schemas = st.builds(lambda properties: {"type": "object", "properties": properties}, objects)


def through_json(data: dict[str, Any]) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(json.dumps(data))
    return read


def test_d1_a_tool_has_a_qualified_name() -> None:
    assert Tool("a", "w").qualified_name == "w::a"
    assert Tool("a").qualified_name == "default::a"
    assert ToolCall("a", "w", {}).qualified_name == "w::a"


def test_d2_both_forms_of_a_call_are_equal() -> None:
    assert ToolCall.from_dict({"name": "w::a"}) == ToolCall.from_dict({"name": "a", "namespace": "w"})
    assert ToolCall.from_dict({"name": "w::a", "namespace": "w"}) == ToolCall("a", "w", {})
    assert ToolCall.parse("w::a", {"x": 1}, "id") == ToolCall("a", "w", {"x": 1}, "id")


def test_d2_a_name_splits_at_the_first_separator_only() -> None:
    assert ToolCall.parse("w::a::b") == ToolCall("a::b", "w", {})
    assert ToolCall.parse("a") == ToolCall("a", "default", {})


@given(st.builds(Tool, names, namespaces, st.text(), schemas, st.none() | schemas, objects))
def test_d3_a_tool_comes_back_from_json(tool: Tool) -> None:
    assert Tool.from_dict(through_json(tool.to_dict())) == tool


@given(st.builds(ToolCall, names, namespaces, objects, st.none() | st.text()))
def test_d3_a_call_comes_back_from_json(call: ToolCall) -> None:
    assert ToolCall.from_dict(through_json(call.to_dict())) == call


@given(
    st.builds(
        ToolResult,
        st.none() | st.text(),
        names,
        values,
        st.none() | st.text(),
        st.none() | st.sampled_from(ErrorType),
        objects,
    )
)
def test_d3_a_result_comes_back_from_json(result: ToolResult) -> None:
    assert ToolResult.from_dict(through_json(result.to_dict())) == result


def test_d4_an_error_makes_a_result_a_failure() -> None:
    failed = ToolResult.failed(ToolCall("a", "w", {}, "c"), ErrorType.limit, "too many", limit=3)
    assert failed == ToolResult("c", "w::a", None, "too many", ErrorType.limit, {"limit": 3})
    assert failed.is_error
    assert not ToolResult("c", "w::a", result=None).is_error
    assert ToolResult("c", "w::a", error="").is_error


def test_d5_wire_keys() -> None:
    assert ToolCall("a", "w", {"x": 1}, "c").to_dict() == {"name": "w::a", "arguments": {"x": 1}, "id": "c"}
    assert ToolResult("c", "w::a", {"y": 2}).to_dict() == {"id": "c", "name": "w::a", "result": {"y": 2}}
    assert ToolResult("c", "w::a", None, "no", ErrorType.network, {"injected": "x"}).to_dict() == {
        "id": "c",
        "name": "w::a",
        "result": None,
        "error": "no",
        "error_type": "network",
        "metadata": {"injected": "x"},
    }


def test_d69_the_fingerprint_is_of_the_parameters_whatever_their_order() -> None:
    one = Tool("a", parameters={"type": "object", "properties": {"x": {"type": "string", "enum": ["é"]}}})
    other = Tool("b", parameters={"properties": {"x": {"enum": ["é"], "type": "string"}}, "type": "object"})
    assert one.fingerprint == other.fingerprint
    text = json.dumps(one.parameters, sort_keys=True, separators=(",", ":"))
    assert one.fingerprint == hashlib.sha256(text.encode()).hexdigest()


def test_d69_a_tool_needs_a_name_and_a_namespace() -> None:
    for name, namespace in (("", "w"), ("a", ""), ("a", "w::x"), ("a", "w:")):
        with pytest.raises(InvalidTool):
            Tool(name, namespace)


def test_tools_can_be_members_of_sets() -> None:
    assert len({Tool("a", "w"), Tool("a", "w"), Tool("b", "w")}) == 2


@pytest.mark.parametrize(
    ("given_arguments", "read"), [(None, {}), ("", {}), ('{"x": 1}', {"x": 1}), ("[1]", {}), ({"x": 1}, {"x": 1})]
)
def test_u21_arguments_of_a_call_are_read_leniently(given_arguments: Any, read: dict[str, Any]) -> None:
    assert ToolCall.from_dict({"name": "a", "arguments": given_arguments}).arguments == read


def test_u21_arguments_that_are_broken_json_are_an_error() -> None:
    with pytest.raises(InvalidTool, match="call of 'a': its arguments are not JSON"):
        ToolCall.from_dict({"name": "a", "arguments": "{"})


def test_a_call_or_result_without_a_name_is_refused() -> None:
    with pytest.raises(InvalidTool, match="a tool call needs a name"):
        ToolCall.from_dict({"arguments": {}})
    with pytest.raises(InvalidTool, match="needs the name of its tool"):
        ToolResult.from_dict({"id": "c"})


def test_an_unknown_error_type_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidTool, match=r"result of w::a: .*known: validation, execution, timeout"):
        ToolResult.from_dict({"name": "w::a", "error": "x", "error_type": "bad luck"})
