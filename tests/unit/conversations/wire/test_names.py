"""Wire names: reversible, legal for every provider, and independent of order."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.wire.names import WireNames, legal_name
from engines.tool import Tool

LEGAL = re.compile(r"[A-Za-z0-9_-]{1,64}")
NAMES = st.text(st.characters(codec="utf-8", exclude_characters=":"), min_size=1, max_size=90)


def tool(qualified: str) -> Tool:
    namespace, _, name = qualified.partition("::")
    return Tool(name=name, namespace=namespace)


def test_d6_a_qualified_name_travels_as_ns__tool_and_back() -> None:
    names = WireNames([tool("w::a")])

    assert names.encode("w::a") == "w__a"
    assert names.decode("w__a") == "w::a"
    assert len(names) == 1


def test_d6_names_that_would_collide_are_told_apart_by_their_digest() -> None:
    names = WireNames([tool("w::a__b"), tool("w__a::b")])

    assert names.encode("w::a__b") != names.encode("w__a::b")
    assert names.decode(names.encode("w::a__b")) == "w::a__b"
    assert names.decode(names.encode("w__a::b")) == "w__a::b"
    assert names.decode("w__a__b") is None


def test_d6_a_suffixed_name_never_takes_the_name_of_another_tool() -> None:
    collided = WireNames([tool("w::a__b"), tool("w__a::b")]).encode("w::a__b")
    squatter = "w::" + collided.removeprefix("w__")

    names = WireNames([tool("w::a__b"), tool("w__a::b"), tool(squatter)])

    assert names.encode(squatter) == collided
    assert len({names.encode(name) for name in ("w::a__b", "w__a::b", squatter)}) == 3


def test_decision_12_a_long_name_is_cut_and_still_reversible() -> None:
    long = "namespace::" + "x" * 100
    names = WireNames([tool(long), tool(long + "y")])

    assert LEGAL.fullmatch(names.encode(long))
    assert names.decode(names.encode(long)) == long
    assert names.decode(names.encode(long + "y")) == long + "y"


@given(st.lists(st.tuples(NAMES, NAMES), min_size=1, max_size=6))
def test_d6_every_name_is_legal_and_comes_back(pairs: list[tuple[str, str]]) -> None:
    tools = [Tool(name=name, namespace=namespace) for namespace, name in pairs]
    names = WireNames(tools)

    for each in tools:
        wire = names.encode(each.qualified_name)
        assert LEGAL.fullmatch(wire)
        assert names.decode(wire) == each.qualified_name
    assert WireNames(reversed(tools)).encode(tools[0].qualified_name) == names.encode(tools[0].qualified_name)


def test_a_model_that_says_the_qualified_name_is_understood() -> None:
    assert WireNames([tool("w::a")]).decode("w::a") == "w::a"


def test_unknown_names_decode_to_none_and_do_not_encode() -> None:
    names = WireNames([tool("w::a")])

    assert names.decode("w__b") is None
    with pytest.raises(KeyError):
        names.encode("w::b")


@pytest.mark.parametrize("said", ["weather.get", "w::a", "fün ction", "x" * 200, "a/b?c"])
def test_any_name_a_model_makes_up_becomes_legal(said: str) -> None:
    assert LEGAL.fullmatch(legal_name(said))


def test_d69_overloads_share_one_wire_name() -> None:
    other = Tool(name="a", namespace="w", parameters={"type": "object", "properties": {"x": {"type": "string"}}})

    names = WireNames([tool("w::a"), other])

    assert names.encode("w::a") == "w__a"
    assert len(names) == 1


@given(st.lists(NAMES, unique=True, max_size=6), st.lists(NAMES, unique=True, max_size=6))
def test_a16_tools_that_come_later_get_names_of_their_own_and_change_none(first: list[str], later: list[str]) -> None:
    tools = [Tool(name, namespace) for namespace in ("a", "a__b") for name in first]
    names = WireNames(tools)
    before = {tool.qualified_name: names.encode(tool.qualified_name) for tool in tools}
    added = [Tool(name, namespace) for namespace in ("a__b", "a") for name in later]
    for tool in added:
        names = names.with_tool(tool)
    wires = {tool.qualified_name: names.encode(tool.qualified_name) for tool in [*tools, *added]}
    assert wires.items() >= before.items()
    assert len(set(wires.values())) == len(wires)
    assert all(LEGAL.fullmatch(wire) and names.decode(wire) == qualified for qualified, wire in wires.items())
