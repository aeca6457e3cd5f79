"""The registry: what is unique, how a tool is found, what a job's patterns select."""

import pytest

from engines.errors import ConfigurationInvalid, DuplicateTool, InvalidTool
from engines.registry import ToolRegistry
from engines.tool import Tool, ToolCall
from engines.toolset import Toolset


def schema(**properties: str) -> dict[str, object]:
    return {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in properties.items()},
        "required": list(properties),
    }


BY_CITY = Tool("get", "w", "by city", schema(city="string"))
BY_PLACE = Tool("get", "w", "by place", schema(lat="number", lon="number"))
LIST = Tool("list", "w")
GET_PERSON = Tool("get", "hr", "a person", schema(city="string"))


@pytest.fixture
def registry() -> ToolRegistry:
    return ToolRegistry([Toolset("w", None, (BY_CITY, BY_PLACE, LIST)), Toolset("hr", None, (GET_PERSON,))])


def test_d69_the_same_tool_twice_is_refused() -> None:
    with pytest.raises(DuplicateTool, match="tool 'w::get' is defined twice with the same parameters"):
        ToolRegistry([Toolset("w", None, (BY_CITY, Tool("get", "w", "other words", BY_CITY.parameters)))])


def test_d69_one_name_may_have_several_schemas_and_namespaces(registry: ToolRegistry) -> None:
    assert registry.overloads("w::get") == (BY_CITY, BY_PLACE)
    assert registry.get("hr::get") is GET_PERSON
    assert registry.has_overloads


def test_a_namespace_has_one_toolset_with_its_own_tools() -> None:
    with pytest.raises(DuplicateTool, match="namespace 'w' has two toolsets"):
        ToolRegistry([Toolset("w", None, ()), Toolset("w", None, ())])
    with pytest.raises(InvalidTool, match="tool 'hr::get' stands in the toolset 'w'"):
        ToolRegistry([Toolset("w", None, (GET_PERSON,))])


def test_d70_a_single_candidate_is_returned_unchecked(registry: ToolRegistry) -> None:
    assert registry.match(ToolCall("list", "w", {"nonsense": 1})) is LIST


def test_d70_of_overloads_the_one_that_validates_is_meant(registry: ToolRegistry) -> None:
    assert registry.match(ToolCall("get", "w", {"city": "Rome"})) is BY_CITY
    assert registry.match(ToolCall("get", "w", {"lat": 1, "lon": 2})) is BY_PLACE


def test_d70_when_none_validates_the_largest_overlap_of_keys_is_meant(registry: ToolRegistry) -> None:
    assert registry.match(ToolCall("get", "w", {"lat": "north", "lon": 2})) is BY_PLACE
    assert registry.match(ToolCall("get", "w", {"city": 1})) is BY_CITY


def test_d70_when_several_validate_the_largest_overlap_of_keys_is_meant() -> None:
    narrow = Tool("get", "w", parameters={"type": "object", "properties": {"a": {}}})
    wide = Tool("get", "w", parameters={"type": "object", "properties": {"a": {}, "b": {}}})
    registry = ToolRegistry([Toolset("w", None, (narrow, wide))])
    assert registry.match(ToolCall("get", "w", {"a": 1, "b": 2})) is wide
    assert registry.match(ToolCall("get", "w", {"a": 1})) is narrow


def test_d70_no_candidate_is_none(registry: ToolRegistry) -> None:
    assert registry.match(ToolCall("nothing", "w", {})) is None
    assert registry.match(ToolCall("get", "w", {"city": "Rome"}), ["hr"]) is None
    assert registry.match(ToolCall("get", "hr", {"city": "Rome"}), ["hr"]) is GET_PERSON


def test_d71_looking_up(registry: ToolRegistry) -> None:
    assert len(registry) == 4
    assert list(registry) == [BY_CITY, BY_PLACE, LIST, GET_PERSON] == list(registry.all_tools())
    assert registry.namespaces() == ["w", "hr"]
    assert registry.tool_names() == ["hr::get", "w::get", "w::list"]
    assert registry.get_by_name("get") == [BY_CITY, BY_PLACE, GET_PERSON]
    assert registry.get_by_fingerprint("w::get", BY_PLACE.fingerprint) is BY_PLACE
    assert [definition["name"] for definition in registry.to_dicts()] == ["w::get", "w::get", "w::list", "hr::get"]
    assert "w::get" in registry
    assert BY_PLACE in registry
    assert "w::gett" not in registry


def test_d71_what_is_not_there_is_a_key_error_with_a_hint(registry: ToolRegistry) -> None:
    with pytest.raises(KeyError, match="no tool 'w::gett'; did you mean 'w::get'"):
        registry.get("w::gett")
    with pytest.raises(KeyError, match="no tool named 'lists' in any namespace; did you mean 'list'"):
        registry.get_by_name("lists")
    with pytest.raises(KeyError, match="no overload of 'w::get' has the fingerprint 00"):
        registry.get_by_fingerprint("w::get", "00")


def test_no_patterns_select_everything(registry: ToolRegistry) -> None:
    assert registry.select(None) == [BY_CITY, BY_PLACE, LIST, GET_PERSON]
    assert registry.select([]) == []


def test_patterns_select_in_registry_order_each_tool_once(registry: ToolRegistry) -> None:
    assert registry.select(["hr::get", "w::list", "w::list"]) == [LIST, GET_PERSON]
    assert registry.select(["w::*", "w::get"]) == [BY_CITY, BY_PLACE, LIST]


def test_u3_disabled_tools_are_left_out(registry: ToolRegistry) -> None:
    assert registry.select(None, ["w::get"]) == [LIST, GET_PERSON]
    assert registry.select(["w::list", "hr::get"], ["hr::*"]) == [LIST]


@pytest.mark.parametrize(
    ("pattern", "hint"), [("w::lits", "did you mean 'w::list'"), ("ww::*", "did you mean 'w::"), ("*", "known: ")]
)
def test_a_pattern_that_names_nothing_is_an_error_with_a_hint(registry: ToolRegistry, pattern: str, hint: str) -> None:
    with pytest.raises(ConfigurationInvalid, match=f"tools: no tool .*; {hint}"):
        registry.select([pattern])
    with pytest.raises(ConfigurationInvalid, match="disabled_tools: no tool"):
        registry.select(None, [pattern])


def test_registries_are_equal_by_content(registry: ToolRegistry) -> None:
    other = ToolRegistry([Toolset("w", None, (BY_CITY, BY_PLACE, LIST)), Toolset("hr", None, (GET_PERSON,))])
    assert registry == other
    assert registry != ToolRegistry([Toolset("w", "engine", (BY_CITY, BY_PLACE, LIST))])
