"""Which tools a job is offered: the truth table of rule U3, and rule U4."""

from typing import Any

import pytest

from engines.errors import ConfigurationInvalid
from engines.offering import Offer, offer
from engines.registry import ToolRegistry
from engines.tool import Tool
from engines.toolset import Toolset


def with_switches(name: str, **switches: bool) -> Tool:
    return Tool(name, "w", metadata=dict(switches))


PLAIN, OTHER = Tool("plain", "w"), Tool("other", "w")
ALONE, ALONE_TOO = with_switches("alone", exclusive=True), with_switches("alone_too", exclusive=True)
ALWAYS = with_switches("always", always_on=True)
OFF = frozenset({"off"})


@pytest.fixture
def registry() -> ToolRegistry:
    return ToolRegistry([Toolset("w", None, (PLAIN, OTHER, ALONE, ALONE_TOO, ALWAYS), disabled=OFF)])


@pytest.mark.parametrize(
    ("tools", "disabled", "offered"),
    [
        # Nothing chosen: all but the exclusive ones.
        (None, [], [PLAIN, OTHER, ALWAYS]),
        (["w::*"], [], [PLAIN, OTHER, ALWAYS]),
        # Not chosen: out; what is always on is in (U4).
        (["w::plain"], [], [PLAIN, ALWAYS]),
        ([], [], [ALWAYS]),
        # Not enabled: out, also when it is chosen.
        (["w::off"], [], [ALWAYS]),
        (["w::off", "w::plain"], [], [PLAIN, ALWAYS]),
        # Disabled by the job: out, chosen or not, always on or not.
        (None, ["w::plain"], [OTHER, ALWAYS]),
        (["w::plain"], ["w::plain"], [ALWAYS]),
        (["w::plain"], ["w::always"], [PLAIN]),
        (None, ["w::*"], []),
        (None, ["w::off"], [PLAIN, OTHER, ALWAYS]),
        # Exclusive and chosen: only that tool.
        (["w::alone"], [], [ALONE]),
        (["w::plain", "w::alone", "w::*"], [], [ALONE]),
        (["alone"], [], [ALONE]),
        # Exclusive and disabled by the job: out.
        (["w::alone", "w::plain"], ["w::alone"], [PLAIN, ALWAYS]),
        (["w::alone", "w::alone_too"], ["w::alone"], [ALONE_TOO]),
    ],
)
def test_u3_u4_the_truth_table(
    registry: ToolRegistry, tools: list[str] | None, disabled: list[str], offered: list[Tool]
) -> None:
    assert offer(registry, tools, disabled).tools == offered


def test_u3_two_exclusive_tools_cannot_both_be_offered_alone(registry: ToolRegistry) -> None:
    with pytest.raises(ConfigurationInvalid, match="tools: w::alone, w::alone_too are exclusive"):
        offer(registry, ["w::alone", "w::alone_too"])


@pytest.mark.parametrize(
    ("tools", "disabled"),
    [
        (["w::alonee"], []),
        (["w::alone", "w::nope"], []),
        (["w::alone", "v::*"], []),
        (None, ["w::nope"]),
        (["v::*"], []),
    ],
)
def test_u3_a_name_that_nothing_has_is_an_error_beside_exclusive_tools_too(
    registry: ToolRegistry, tools: Any, disabled: Any
) -> None:
    with pytest.raises(ConfigurationInvalid, match="no tool"):
        offer(registry, tools, disabled)


def test_u3_an_exclusive_tool_brings_its_overloads() -> None:
    schema = {"type": "object", "properties": {"x": {}}}
    overload = Tool("alone", "w", parameters=schema, metadata={"exclusive": True})
    registry = ToolRegistry([Toolset("w", None, (ALONE, PLAIN, overload))])
    assert offer(registry, ["w::alone"]).tools == [ALONE, overload]


def test_u4_what_is_always_on_stands_beside_the_draw_and_a_drawn_name_brings_its_overloads() -> None:
    overload = Tool("plain", "w", parameters={"type": "object", "properties": {"x": {}}})
    offered = Offer([PLAIN, OTHER, overload], [ALWAYS])
    assert offered.with_draw([OTHER]) == [OTHER, ALWAYS]
    assert offered.with_draw([OTHER, PLAIN]) == [OTHER, PLAIN, overload, ALWAYS]
    assert offered.with_draw([]) == [ALWAYS]
