"""Tools that come and go in the middle of a conversation (rules A16, A17), also across a restart."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import orjson
import pytest

from conversations.errors import ModelUnavailable, ToolsInvalid
from conversations.messages import Message, assistant, user
from conversations.offered import OfferedTools, ever_offered
from conversations.runner import ToolRunner
from conversations.selection import ToolSelection
from conversations.state import State
from engines.tool import Tool, ToolCall, ToolResult
from tests.support import counting_tools
from tests.support.loop_world import ADD, ECHO, World, assert_each_request_was_valid, mutate_once, world_of
from tests.support.scripted_model import calls

BY_CITY = Tool("get", "w", parameters={"type": "object", "properties": {"city": {"type": "string"}}})
BY_PLACE = Tool("get", "w", parameters={"type": "object", "properties": {"lat": {"type": "number"}}})


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with world_of() as made:
        yield made


def without(world: World, *names: str) -> ToolSelection:
    return ToolSelection.of([tool for tool in world.tools.tools if tool.name not in names])


def only(world: World, name: str) -> Tool:
    return next(tool for tool in world.tools.tools if tool.name == name)


def offered_to(world: World) -> list[list[str]]:
    """The names of each request's tools."""
    return [[tool["function"]["name"] for tool in asked.tools or ()] for asked in world.model.asked]


def doing(what: Callable[[ToolRunner], None]) -> Callable[[ToolRunner, Message], None]:
    return lambda runner, _: what(runner)


async def test_a16_a_removed_tool_is_an_unknown_one_from_then_on(world: World) -> None:
    runner = world.runner(calls(ADD), calls(ECHO), assistant("done"))
    await mutate_once(runner, 0, doing(lambda runner: runner.remove_tools("w::echo")))
    assert offered_to(world)[1:] == [["w__add", "w__fail"]] * 2
    assert [entry["error_type"] for entry in world.state.tool_results] == [None, "unknown_tool"]
    assert world.state.tool_results[1]["error"] == "Unknown tool 'w__echo'; known tools: w__add, w__fail."
    assert counting_tools.RUNS == [("add", (1, 2))]
    assert_each_request_was_valid(world)


async def test_a16_a_call_of_the_message_that_is_looked_at_is_one_of_an_unknown_tool_too(world: World) -> None:
    runner = world.runner(calls(ADD, ECHO), assistant("done"))
    await mutate_once(runner, 0, doing(lambda runner: runner.remove_tools("echo")))
    assert [entry["error_type"] for entry in world.state.tool_results] == [None, "unknown_tool"]
    assert counting_tools.RUNS == [("add", (1, 2))]


async def test_a16_a_tool_that_comes_back_runs(world: World) -> None:
    runner = world.runner(calls(ECHO), calls(("f", *ECHO[1:])), assistant("done"))
    runner.remove_tools("w__echo")
    await mutate_once(runner, 1, doing(lambda runner: runner.add_tools("echo")))
    assert [entry["error_type"] for entry in world.state.tool_results] == ["unknown_tool", None]
    assert world.state.offered == {}
    assert offered_to(world)[1] == offered_to(world)[2] == ["w__add", "w__echo", "w__fail"]


async def test_a16_a_tool_may_be_added_as_it_is_or_by_its_name_in_the_catalogue(world: World) -> None:
    def change(runner: ToolRunner) -> None:
        runner.add_tools(only(world, "add"), "echo")

    runner = world.runner(
        calls(ADD),
        calls(("b", *ADD[1:]), ECHO),
        assistant("done"),
        tools=without(world, "add", "echo"),
        catalogue=[only(world, "echo")],
    )
    await mutate_once(runner, 1, doing(change))
    assert offered_to(world) == [["w__fail"], ["w__fail", "w__add", "w__echo"], ["w__fail", "w__add", "w__echo"]]
    assert [entry["error_type"] for entry in world.state.tool_results] == ["unknown_tool", None, None]


async def test_a16_the_yielded_message_stays(world: World) -> None:
    runner = world.runner(assistant("done"))
    await mutate_once(runner, 0, doing(lambda runner: runner.remove_tools("echo")))
    assert (world.state.messages, world.state.status) == ([user("hi"), assistant("done")], "completed")


async def test_a16_what_was_added_and_removed_is_restored_with_the_state(world: World) -> None:
    runner = world.runner(calls(ADD), ModelUnavailable("down"), tools=without(world, "echo"))
    runner.add_tools(only(world, "echo"))
    runner.remove_tools("fail")
    with pytest.raises(ModelUnavailable):
        await runner.until_done()
    state = State.from_json(world.state.to_json())
    assert state == world.state
    runner = world.runner(
        calls(ECHO, ("f", "w__fail", {"reason": "x"})), assistant("done"), state=state, tools=without(world, "echo")
    )
    await runner.until_done()
    assert offered_to(world) == [["w__add", "w__echo"]] * 2
    assert [entry["error_type"] for entry in state.tool_results] == [None, None, "unknown_tool"]
    names = ever_offered(without(world, "echo"), state.offered).names
    assert [entry["call"]["name"] for entry in state.history_entries(names)] == ["w::add", "w::echo"]


async def test_a16_calls_that_wait_outside_are_answered_although_their_tool_went(world: World) -> None:
    external = ToolSelection.of(world.tools.tools, external=["w::echo"])
    await world.runner(calls(ECHO), tools=external).until_done()
    runner = world.runner(assistant("done"), tools=external)
    runner.remove_tools("echo")
    assert runner.pending_calls() == [ToolCall("echo", "w", {"text": "x"}, "e")]
    runner.answer([ToolResult("e", "w::echo", "late")])
    await runner.until_done()
    assert world.state.status == "completed"
    assert_each_request_was_valid(world)


async def test_a16_an_added_tool_may_be_answered_from_outside(world: World) -> None:
    ask = Tool("ask", "people", metadata={"external": True})
    runner = world.runner(calls(("q", "people__ask", {})))
    runner.add_tools(ask)
    await runner.until_done()
    assert world.state.status == "awaiting_tool_results"
    assert world.runner().pending_calls() == [ToolCall("ask", "people", {}, "q")]


async def test_a17_a_name_that_is_offered_is_not_added_again(world: World) -> None:
    runner = world.runner()
    with pytest.raises(ToolsInvalid, match="'w::add' is offered already"):
        runner.add_tools(Tool("new", "w"), only(world, "add"))
    with pytest.raises(ToolsInvalid, match="'w::get' is offered already"):
        runner.add_tools(BY_CITY, BY_PLACE)
    assert world.state.offered == {}


def test_a17_s3_the_same_tool_twice_is_refused_and_overloads_are_not() -> None:
    with pytest.raises(ToolsInvalid, match="'w::get' is there twice"):
        ToolSelection.of([BY_CITY, BY_PLACE, BY_CITY])
    assert len(ToolSelection.of([BY_CITY, BY_PLACE]).native) == 1


@pytest.mark.parametrize(
    ("name", "said"), [("w::ecko", "did you mean 'w::echo'"), ("nothing::like_it", "known: w::add")]
)
async def test_names_that_nothing_has_are_told_with_a_hint(world: World, name: str, said: str) -> None:
    with pytest.raises(ToolsInvalid, match=said):
        world.runner().remove_tools("add", name)
    assert world.state.offered == {}
    with pytest.raises(ToolsInvalid, match="can be added"):
        world.runner().add_tools(name)


def offering(*tools: Tool) -> OfferedTools:
    return OfferedTools(ToolSelection.of(tools), State())


def test_a_removed_name_brings_all_its_overloads_back() -> None:
    tools = offering(BY_CITY, BY_PLACE, Tool("x", "w"))
    tools.remove(["get"])
    assert [tool.name for tool in tools.now.tools] == ["x"]
    tools.add(["get"])
    assert tools.now.tools == [BY_CITY, BY_PLACE, Tool("x", "w")]


def test_another_tool_may_take_the_place_of_a_removed_one_and_give_it_back() -> None:
    tools = offering(BY_CITY, BY_PLACE)
    tools.remove(["get"])
    other = Tool("get", "w", description="Another one.")
    tools.add([other])
    assert tools.now.tools == [other]
    tools.remove(["get"])
    tools.add([BY_CITY])
    assert tools.now.tools == [BY_CITY, BY_PLACE]


def test_replacing_offers_these_alone() -> None:
    tools = offering(BY_CITY, Tool("x", "w"))
    tools.add([Tool("y", "w")])
    tools.replace(["x", Tool("z", "w"), "y"])
    assert {tool.name for tool in tools.now.tools} == {"x", "y", "z"}
    tools.replace([BY_CITY])
    assert tools.now.tools == [BY_CITY]
    with pytest.raises(ToolsInvalid, match="'w::q' is there twice"):
        tools.replace([Tool("q", "w"), Tool("q", "w", description="Another.")])
    assert tools.now.tools == [BY_CITY]


def test_wire_names_that_the_history_may_hold_never_change() -> None:
    """`a::b__c` and `a__b::c` want the same name; so does what is too long for any."""
    first, second, long = Tool("b__c", "a"), Tool("c", "a__b"), Tool("x" * 70, "a")
    tools = offering(first)
    for tool in (second, long):
        tools.add([tool])
    names = tools.now.names
    assert names.encode(first.qualified_name) == "a__b__c"
    wires = [names.encode(tool.qualified_name) for tool in (first, second, long)]
    assert len(set(wires)) == len(wires)
    assert all(len(wire) <= 64 for wire in wires)
    assert [names.decode(wire) for wire in wires] == [tool.qualified_name for tool in (first, second, long)]


def test_the_encoding_follows_the_offer() -> None:
    tools = offering(BY_CITY, Tool("x", "w"))
    tools.remove(["x"])
    assert orjson.loads(tools.now.encoded) == tools.now.native
    assert [each["function"]["name"] for each in tools.now.native] == ["w__get"]


@pytest.mark.parametrize("choice", ["w::echo", {"type": "function", "function": {"name": "echo"}}])
async def test_a_forced_choice_goes_with_its_tool(world: World, choice: Any) -> None:
    runner = world.runner(assistant("done"), tool_choice=choice)
    runner.remove_tools("echo")
    await runner.until_done()
    assert world.model.asked[0].tool_choice is None
