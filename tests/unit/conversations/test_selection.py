"""Which tools a job is offered, and that the same choice is encoded once."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from conversations.errors import ToolChoiceInvalid
from conversations.selection import Selector, ToolSelection
from engines.configuration import PermissionSettings, SampleSettings, ToolsConfiguration
from engines.errors import ConfigurationInvalid
from engines.loading import load_registry
from engines.registry import ToolRegistry
from engines.tool import Tool, ToolCall


def registry(count: int = 3) -> ToolRegistry:
    tools = [{"name": f"t{number}", "parameters": {"type": "object", "properties": {}}} for number in range(count)]
    block = {"registry": [{"type": "inline", "namespace": space, "tools": tools} for space in ("a", "b")]}
    return load_registry(ToolsConfiguration.model_validate(block), folder=Path(), environment={})


def names_of(selection: ToolSelection) -> list[str]:
    return [tool.qualified_name for tool in selection.tools]


def test_all_tools_are_offered_unless_a_job_says_otherwise() -> None:
    assert len(Selector(registry()).select(None).tools) == 6


def test_a_job_chooses_by_pattern_and_leaves_out_what_it_disables() -> None:
    selection = Selector(registry()).select(["a::*", "b::t1"], ["a::t0"])
    assert names_of(selection) == ["a::t1", "a::t2", "b::t1"]
    assert selection.wire_names() == ["a__t1", "a__t2", "b__t1"]


def test_no_patterns_at_all_mean_no_tools() -> None:
    selection = Selector(registry()).select([])
    assert (selection.tools, selection.native, selection.encoded) == ([], [], b"[]")


def test_a_pattern_that_names_no_tool_is_an_error_with_the_nearest() -> None:
    with pytest.raises(ConfigurationInvalid, match=r"no tool 'a::t7'; did you mean 'a::t2'"):
        Selector(registry()).select(["a::t7"])


def test_the_native_definitions_are_encoded_once_for_every_job_with_the_same_tools() -> None:
    selector = Selector(registry())
    first = selector.select(["a::*"])
    assert selector.select(["a::t0", "a::t1", "a::t2"]) is first
    assert selector.select(["a::*", "b::t0"], ["b::*"]) is first
    assert orjson.loads(first.encoded) == first.native


def test_a_draw_is_the_same_for_a_job_on_every_worker_and_differs_between_jobs() -> None:
    sample = SampleSettings(type="tc/random", k=2)
    here, there = Selector(registry(20), sample), Selector(registry(20), sample)
    drawn = [names_of(here.select(None, seed=seed)) for seed in range(20)]
    assert drawn == [names_of(there.select(None, seed=seed)) for seed in range(20)]
    assert {len(names) for names in drawn} == {2}
    assert len({tuple(names) for names in drawn}) > 10


def test_a_job_that_leaves_fewer_tools_than_the_draw_wants_gets_all_of_them() -> None:
    selector = Selector(registry(), SampleSettings(type="tc/random", k=5))
    assert sorted(names_of(selector.select(["a::t0", "a::t1"], seed=1))) == ["a::t0", "a::t1"]
    assert selector.select([], seed=1).tools == []


def test_the_number_of_kept_selections_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conversations.selection.SELECTIONS_KEPT", 4)
    selector = Selector(registry(20), SampleSettings(type="tc/random", k=3))
    for seed in range(50):
        selector.select(["a::*"], [f"a::t{seed % 20}"], seed=seed)
    assert len(selector._selections) <= 4
    assert len(selector._offers) <= 4


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        (None, None),
        ("auto", "auto"),
        ("required", "required"),
        ("a::t1", {"type": "function", "function": {"name": "a__t1"}}),
        ("a__t1", {"type": "function", "function": {"name": "a__t1"}}),
        (
            {"type": "function", "function": {"name": "a::t1"}},
            {"type": "function", "function": {"name": "a__t1"}},
        ),
    ],
)
def test_u5_a_tool_choice_is_spelled_as_the_wire_does(given: object, sent: object) -> None:
    assert Selector(registry()).select(None).choice(given) == sent


@pytest.mark.parametrize("given", ["a::t9", {"type": "function", "function": {"name": "b::t0"}}, {"type": "x"}, 3, []])
def test_u5_a_forced_tool_that_is_not_offered_is_an_error(given: object) -> None:
    with pytest.raises(ToolChoiceInvalid, match=r"^tool_choice: "):
        Selector(registry()).select(["a::*"]).choice(given)


def test_external_tools_are_offered_like_all_others() -> None:
    selection = ToolSelection.of([Tool("x", "e"), Tool("y", "e")], external=["e::y"])
    assert [selection.external(ToolCall(name, "e", {})) for name in ("x", "y")] == [False, True]
    assert selection.wire_names() == ["e__x", "e__y"]


def switched(**tools: dict[str, bool]) -> ToolRegistry:
    """Return ten plain tools and those with switches, all in one namespace."""
    definitions: list[dict[str, Any]] = [{"name": f"t{number}"} for number in range(10)]
    definitions += [{"name": name, "metadata": switches} for name, switches in tools.items()]
    block = [{"type": "inline", "namespace": "a", "tools": definitions}]
    return load_registry(ToolsConfiguration.model_validate(block), folder=Path(), environment={})


def test_u4_what_is_always_on_is_offered_beside_every_draw_and_choice() -> None:
    selector = Selector(switched(clock={"always_on": True}), SampleSettings(type="tc/random", k=2))
    for seed in range(20):
        names = names_of(selector.select(None, seed=seed))
        assert (len(names), names[-1]) == (3, "a::clock")
    assert names_of(selector.select(["a::t1"])) == ["a::t1", "a::clock"]
    assert names_of(selector.select([])) == ["a::clock"]
    assert names_of(selector.select(["a::t1"], ["a::clock"])) == ["a::t1"]


def test_u3_an_exclusive_tool_is_never_drawn_and_alone_when_it_is_named() -> None:
    selector = Selector(
        switched(deep={"exclusive": True}, clock={"always_on": True}), SampleSettings(type="tc/random", k=9)
    )
    for seed in range(20):
        assert "a::deep" not in names_of(selector.select(None, seed=seed))
    assert names_of(selector.select(["a::t1", "a::deep"])) == ["a::deep"]


def test_d69_a_drawn_name_brings_all_its_overloads() -> None:
    schema = {"type": "object", "properties": {"x": {"type": "string"}}}
    tools = [{"name": "get"}, {"name": "other"}, {"name": "get", "parameters": schema}]
    block = [{"type": "inline", "namespace": "a", "tools": tools}]
    loaded = load_registry(ToolsConfiguration.model_validate(block), folder=Path(), environment={})
    selector = Selector(loaded, SampleSettings(type="tc/random", k=1))
    drawn = {tuple(names_of(selector.select(None, seed=seed))) for seed in range(20)}
    assert drawn == {("a::get", "a::get"), ("a::other",)}
    both = next(chosen for seed in range(20) if len((chosen := selector.select(None, seed=seed)).tools) == 2)
    assert both.wire_names() == ["a__get"]


def test_e6_a_tool_choice_may_leave_the_namespace_out_where_one_tool_has_the_name() -> None:
    assert Selector(registry()).select(["a::*"]).choice("t1") == {"type": "function", "function": {"name": "a__t1"}}
    with pytest.raises(ToolChoiceInvalid, match=r"'t1' is the name of several tools \(a::t1, b::t1\); say which"):
        Selector(registry()).select(None).choice("t1")


def test_calls_that_want_confirmation_are_external_and_refused_ones_are_not() -> None:
    write = {"properties": {"mode": {"const": "write"}}, "required": ["mode"]}
    permissions = PermissionSettings.model_validate(
        {"deny": ["a::t0"], "confirm": ["a::t0", "a::t1", {"tool": "a::t2", "arguments": write}]}
    )
    selection = Selector(registry(), permissions=permissions).select(None)
    external = [selection.external(ToolCall(name, "a", {})) for name in ("t0", "t1", "t2", "unknown")]
    assert external == [False, True, False, False]
    assert selection.external(ToolCall("t2", "a", {"mode": "write"}))


def test_a_rule_on_an_unknown_tool_is_an_error_before_any_job() -> None:
    with pytest.raises(ConfigurationInvalid, match="no tool 'a::t9'"):
        Selector(registry(), permissions=PermissionSettings.model_validate({"confirm": ["a::t9"]}))
