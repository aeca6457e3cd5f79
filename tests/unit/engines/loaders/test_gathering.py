"""What a recipe says of namespaces, tools and entries: switches, doubles, entries that may be missing."""

import json
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from engines.configuration import ToolsConfiguration
from engines.errors import ConfigurationInvalid, DuplicateTool, SettingsInvalid
from engines.loading import load_registry, pinned
from engines.registry import ToolRegistry, source_of
from engines.tool import Tool
from engines.wiring import build_engine
from tests.unit.engines.stage import no_speak

BROKEN = {"name": "broken", "parameters": {"type": "object", "properties": {"x": {"type": "flaot"}}}}
TYPED = {"name": "a", "parameters": {"type": "object", "properties": {"x": {"type": "string"}}}}


def inline(*tools: Any, namespace: str = "w", **more: Any) -> dict[str, Any]:
    return {"type": "inline", "namespace": namespace, "tools": list(tools), **more}


def load(block: Any, folder: Path = Path()) -> ToolRegistry:
    return load_registry(ToolsConfiguration.model_validate(block), folder=folder, environment={})


def with_tools(*tools: Any, **settings: Any) -> ToolRegistry:
    return load({"registry": [inline(*tools)], "namespaces": {"w": {"tools": settings}}})


def repinned(block: Any) -> tuple[ToolRegistry, ToolRegistry]:
    """Load a block, and what is stored of it as a worker does."""
    configuration = ToolsConfiguration.model_validate(block)
    registry = load(block)
    stored = json.loads(json.dumps(pinned(configuration, registry)))
    again = load(stored)
    assert pinned(ToolsConfiguration.model_validate(stored), again) == stored
    return registry, again


# Namespaces


def test_e9_of_a_disabled_namespace_nothing_is_loaded_connected_or_built() -> None:
    block = {
        "registry": [
            inline({"name": "a"}, engine="code"),
            {"type": "file", "path": "nowhere.yaml", "namespace": "hr", "engine": "missing"},
        ],
        "engines": {
            "code": {"type": "local", "module": "tests.unit.engines.marked_tools", "functions": {"a": "plain"}},
            "missing": {"type": "local", "module": "no_such_module"},
        },
        "namespaces": {"hr": {"enabled": False, "stateful": True}},
    }
    registry, again = repinned(block)
    assert registry == again
    assert again.namespaces() == ["w"]
    assert again.select(["hr::*", "hr::who", "w::a"]) == [Tool("a", "w")]
    build_engine(ToolsConfiguration.model_validate(block), again, speak_for=no_speak)


def test_e9_tools_that_a_file_puts_into_a_disabled_namespace_are_left_out() -> None:
    block = {"registry": [inline({"name": "a"}, {"name": "hr::b"})], "namespaces": {"hr": {"enabled": False}}}
    registry, again = repinned(block)
    assert registry == again
    assert registry.tool_names() == ["w::a"]


def test_a_disabled_namespace_that_nothing_names_is_a_typo() -> None:
    with pytest.raises(ConfigurationInvalid, match="no tools in namespace 'hrr'; known: w"):
        load({"registry": [inline({"name": "a"})], "namespaces": {"hrr": {"enabled": False}}})


# Single tools


def test_what_the_recipe_says_of_a_tool_is_over_what_was_loaded() -> None:
    loaded = {"name": "a", "description": "old", "metadata": {"read_only": True, "defaults": {"max_retries": 2}}}
    settings = {
        "description": "new",
        "read_only": False,
        "idempotent": True,
        "exclusive": True,
        "defaults": {"timeout_seconds": 5},
    }
    registry = with_tools(loaded, a=settings)
    tool = registry.get("w::a")
    assert tool.description == "new"
    assert tool.metadata == {
        "read_only": False,
        "idempotent": True,
        "exclusive": True,
        "defaults": {"max_retries": 2, "timeout_seconds": 5},
    }
    defaults = registry.toolsets["w"].defaults_for(tool)
    assert (defaults.max_retries, defaults.timeout_seconds) == (2, 5)


def test_what_the_recipe_leaves_out_stays_as_it_was_loaded() -> None:
    loaded = {"name": "a", "description": "old", "metadata": {"always_on": True, "confirm": True}}
    assert with_tools(loaded, a={}).get("w::a") == Tool("a", "w", "old", metadata={"always_on": True, "confirm": True})
    assert with_tools(loaded, a={"confirm": False}).get("w::a").metadata["confirm"] is False


def test_settings_hold_for_every_overload() -> None:
    registry = with_tools({"name": "a"}, TYPED, a={"description": "both"})
    assert [tool.description for tool in registry.overloads("w::a")] == ["both", "both"]


def test_u3_a_disabled_tool_is_known_by_name_and_nothing_more() -> None:
    block = {
        "registry": [inline({"name": "a"}, {"name": "b", "metadata": {"enabled": False}}, {"name": "c"})],
        "namespaces": {"w": {"tools": {"a": {"enabled": False}}}},
    }
    for registry in repinned(block):
        assert registry.tool_names() == ["w::c"]
        assert registry.select(["w::a", "w::b", "w::*"]) == [Tool("c", "w")]


def test_a_disabled_tool_need_not_be_usable() -> None:
    assert with_tools(BROKEN, {"name": "a"}, broken={"enabled": False}).tool_names() == ["w::a"]


def test_settings_are_in_the_pinned_tools_and_not_said_twice() -> None:
    block = {"registry": [inline({"name": "a"})], "namespaces": {"w": {"tools": {"a": {"description": "new"}}}}}
    configuration = ToolsConfiguration.model_validate(block)
    stored = pinned(configuration, load(block))
    assert stored["namespaces"]["w"]["tools"] == {}
    assert stored["registry"][0]["tools"][0]["description"] == "new"


@pytest.mark.parametrize(
    ("tools", "settings", "at", "cause"),
    [
        ([{"name": "get"}], {"gett": {}}, ("namespaces", "w", "tools", "gett"), "no tool 'gett' in namespace 'w'; did"),
        (
            [{"name": "a"}],
            {"a": {"exclusive": True, "always_on": True}},
            ("registry", 0),
            "both exclusive and always_on",
        ),
        ([{"name": "a", "metadata": {"enabled": "no"}}], {}, ("registry", 0), "metadata.enabled must be true or false"),
        ([{"name": "a"}], {"a": {"defaults": {"timeout": 5}}}, ("registry", 0), "metadata.defaults"),
        ([{"name": "a", "metadata": {"defaults": [1]}}], {}, ("registry", 0), "metadata.defaults"),
    ],
)
def test_settings_that_cannot_be_used_are_blamed_at_their_place(
    tools: list[Any], settings: dict[str, Any], at: tuple[Any, ...], cause: str
) -> None:
    with pytest.raises(ConfigurationInvalid, match=cause) as caught:
        with_tools(*tools, **settings)
    assert caught.value.at == at


# Doubles


def test_d69_a_double_names_both_places_and_the_way_out() -> None:
    with pytest.raises(ConfigurationInvalid) as caught:
        load([inline({"name": "a"}), inline({"name": "b"}), inline({"name": "a"})])
    assert isinstance(caught.value, DuplicateTool)
    assert caught.value.at == ("registry", 2)
    assert "(first in tools.registry[0]); remove one, or write `on_duplicate: skip`" in caught.value.message


@pytest.mark.parametrize(("skipping", "stays"), [((0,), 1), ((1,), 0), ((0, 1), 0)])
def test_u1_the_same_name_in_two_sources_is_one_tool_when_one_gives_way(skipping: tuple[int, ...], stays: int) -> None:
    sources = [inline({"name": "a", "description": "0"}, {"name": "mine"}), inline({**TYPED, "description": "1"})]
    for index in skipping:
        sources[index]["on_duplicate"] = "skip"
    registry = load(sources)
    assert sorted(tool.qualified_name for tool in registry) == ["w::a", "w::mine"]
    assert registry.get("w::a").description == str(stays)


def test_e9_a_tool_that_one_source_disables_and_another_has_is_there() -> None:
    for registry in repinned([inline({"name": "a", "metadata": {"enabled": False}}), inline({"name": "a"})]):
        assert registry.tool_names() == ["w::a"]
        assert registry.toolsets["w"].disabled == frozenset()


def test_u1_overloads_of_one_source_give_way_and_stay_together() -> None:
    alone = load([inline({"name": "a"}, TYPED, on_duplicate="skip")])
    assert len(alone.overloads("w::a")) == 2
    other = {"name": "a", "parameters": {"type": "object", "properties": {"y": {}}}}
    beside = load([inline({"name": "a"}, TYPED, on_duplicate="skip"), inline(other)])
    assert [tool.parameters["properties"] for tool in beside.overloads("w::a")] == [{"y": {}}]


def test_u8_the_source_of_a_tool_is_known_after_pinning() -> None:
    python = {"type": "python", "module": "tests.unit.engines.marked_tools", "namespace": "p"}
    for registry in repinned([inline({"name": "a"}), python]):
        assert [source_of(tool) for tool in registry] == ["definition", "python", "python"]


# Entries that may be missing


def test_u2_a_tool_that_cannot_be_built_stops_the_load_and_is_named() -> None:
    with pytest.raises(ConfigurationInvalid, match=r"tools\.registry\[0\]: tool 'w::broken': parameters: not a usable"):
        load([inline({"name": "a"}, BROKEN)])


def test_u2_of_an_optional_entry_the_other_tools_load_with_a_warning() -> None:
    with capture_logs() as logs:
        registry = load([inline({"name": "a"}, BROKEN, {"nme": "x"}, {"name": "b"}, optional=True)])
    assert registry.tool_names() == ["w::a", "w::b"]
    assert [entry["log_level"] for entry in logs] == ["warning", "warning"]
    assert {"tools.registry[0]", "tools.registry[0].tools[2]"} == {entry["cause"].partition(": ")[0] for entry in logs}


def test_u2_files_leave_out_only_what_is_broken(tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text(json.dumps([{"name": "a"}, {"nme": "x"}, BROKEN, {"name": "b"}]))
    with capture_logs() as logs:
        registry = load([{"type": "file", "path": "tools.json", "namespace": "w", "optional": True}], tmp_path)
    assert registry.tool_names() == ["w::a", "w::b"]
    assert all("tools.json" in entry["cause"] or "w::broken" in entry["cause"] for entry in logs)


def test_u2_an_optional_entry_that_cannot_be_loaded_leaves_the_rest(tmp_path: Path) -> None:
    block = {
        "registry": [
            inline({"name": "a"}),
            {"type": "file", "path": "nowhere.yaml", "namespace": "hr", "optional": True},
        ],
        "namespaces": {"hr": {"stateful": True, "tools": {"who": {"confirm": True}}}},
    }
    with capture_logs() as logs:
        registry, again = repinned(block)
    assert registry == again
    assert registry.namespaces() == ["w"]
    assert registry.select(["hr::*", "w::a"]) == [Tool("a", "w")]
    assert "cannot be read" in logs[0]["cause"]


def test_u2_a_typo_is_not_forgiven_because_an_entry_is_optional() -> None:
    with pytest.raises(SettingsInvalid, match="unknown key 'namspace'"):
        load([{"type": "inline", "tools": [], "namspace": "w", "optional": True}])
    with pytest.raises(ConfigurationInvalid, match="no tools of type 'flie'"):
        load([{"type": "flie", "optional": True}])
    with pytest.raises(ConfigurationInvalid, match="no engine 'sim'"):
        load([inline({"name": "a"}, engine="sim", optional=True)])


def test_d75_a_refresh_reads_the_switches_again(tmp_path: Path) -> None:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps([{"name": "a"}, {"name": "b", "metadata": {"enabled": False}}]))
    registry = load([{"type": "file", "path": "tools.json", "namespace": "w"}], tmp_path)
    assert registry.tool_names() == ["w::a"]
    path.write_text(json.dumps([{"name": "a", "metadata": {"enabled": False}}, {"name": "b"}]))
    registry.refresh()
    assert registry.tool_names() == ["w::b"]
    assert registry.select(["w::a"]) == []
