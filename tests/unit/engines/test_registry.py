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


def test_e6_a_name_without_its_namespace_is_enough_where_only_one_has_it(registry: ToolRegistry) -> None:
    assert registry.select(["list"]) == [LIST]
    with pytest.raises(ConfigurationInvalid, match=r"tools: 'get' is the name of several tools \(w::get, hr::get\)"):
        registry.select(["get"])


def test_e9_what_is_switched_off_is_known_and_selects_nothing() -> None:
    off = [Toolset("w", None, (LIST,), disabled=frozenset({"gone"})), Toolset("hr", None, (), disabled=frozenset("*"))]
    registry = ToolRegistry(off)
    assert registry.namespaces() == ["w"]
    assert registry.select(["w::gone", "gone", "hr::*", "hr::whatever", "w::list"]) == [LIST]
    assert registry.select(None, ["hr::*", "w::gone"]) == [LIST]
    assert "w::gone" not in registry
    with pytest.raises(ConfigurationInvalid, match="no tool 'w::other'"):
        registry.select(["w::other"])


def test_u7_a_tool_made_elsewhere_is_added_to_its_namespace_or_begins_one(registry: ToolRegistry) -> None:
    made, first = Tool("made", "w"), Tool("first", "new")
    registry.add_tool(made)
    registry.add_tool(first, engine="code")
    assert registry.get("w::made") is made
    assert registry.toolsets["w"].tools[-1] is made
    assert registry.toolsets["new"] == Toolset("new", "code", (first,))
    with pytest.raises(DuplicateTool):
        registry.add_tool(made)
    assert len(registry) == 6


def test_u7_an_excluded_tool_is_nowhere_any_more(registry: ToolRegistry) -> None:
    assert registry.exclude_tool("w::get")
    assert registry.tool_names() == ["hr::get", "w::list"]
    assert registry.match(ToolCall("get", "w", {"city": "Rome"})) is None
    assert registry.toolsets["w"].tools == (LIST,)
    assert registry.select(["w::get"]) == []
    assert registry.exclude_tool("list")
    assert not registry.exclude_tool("w::get")
    assert not registry.exclude_tool("w::nothing")


def test_u7_an_excluded_tool_may_be_added_again(registry: ToolRegistry) -> None:
    registry.exclude_tool("w::list")
    registry.add_tool(LIST)
    assert registry.select(["w::list"]) == [LIST]
    assert registry.toolsets["w"].disabled == frozenset()


def test_u7_an_addition_that_fails_is_forgotten(registry: ToolRegistry) -> None:
    with pytest.raises(DuplicateTool):
        registry.add_tool(LIST)
    registry.add_tool(Tool("made", "w"))
    assert registry.exclude_tool("w::made")


def test_u7_additions_and_exclusions_outlive_a_refresh() -> None:
    loaded = [Toolset("w", None, (BY_CITY, LIST))]
    registry = ToolRegistry(loaded, reload=lambda: [Toolset("w", None, (BY_CITY, BY_PLACE, LIST))])
    registry.add_tool(GET_PERSON)
    registry.exclude_tool("w::list")
    registry.refresh()
    assert list(registry) == [BY_CITY, BY_PLACE, GET_PERSON]


def test_u8_calls_are_filtered_by_the_source_of_their_tool() -> None:
    mcp, python = Tool("a", "w", metadata={"source": "mcp"}), Tool("b", "w", metadata={"source": "python"})
    registry = ToolRegistry([Toolset("w", None, (mcp, python, LIST))])
    calls = [ToolCall(name, "w", {}) for name in ("a", "b", "list", "unknown", "a")]
    assert [call.name for call in registry.filter_calls(calls, {"mcp"})] == ["a", "a"]
    assert [call.name for call in registry.filter_calls(calls, {"python", "definition"})] == ["b", "list"]
    assert registry.filter_calls(calls, set()) == []
