"""What requests say of sampling and of choosing tools, and that callers may change it (rules A7, U5, U6, U17)."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from conversations.asking import checked_parameters
from conversations.errors import ModelUnavailable, ParametersInvalid, ToolChoiceInvalid, ToolsInvalid
from conversations.messages import Message, assistant, tool_message, user
from conversations.runner import ToolRunner
from conversations.selection import ToolSelection
from conversations.state import State
from tests.support import counting_tools
from tests.support.loop_world import ADD, ECHO, World, assert_each_request_was_valid, mutate_once, world_of
from tests.support.scripted_model import calls

FORCED_ECHO = {"type": "function", "function": {"name": "w__echo"}}


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with world_of() as made:
        yield made


async def test_a7_setting_parameters_takes_a_text_back_and_asks_anew_with_them(world: World) -> None:
    def change(runner: ToolRunner, _: Message) -> None:
        runner.set_params(temperature=0.9, max_tokens=50, stop=["END"])

    await mutate_once(world.runner(assistant("dull"), assistant("better")), 0, change)
    assert world.state.messages == [user("hi"), assistant("better")]
    said = {"temperature": 0.9, "max_tokens": 50, "stop": ["END"]}
    assert [asked.parameters for asked in world.model.asked] == [{}, said]


async def test_a7_calls_that_wait_get_their_results_although_parameters_were_set(world: World) -> None:
    def change(runner: ToolRunner, _: Message) -> None:
        runner.set_params(temperature=0.9)

    await mutate_once(world.runner(calls(ADD), assistant("done")), 0, change)
    assert world.state.messages == [user("hi"), calls(ADD), tool_message("a", "3"), assistant("done")]
    assert counting_tools.RUNS == [("add", (1, 2))]
    assert_each_request_was_valid(world)


async def test_a7_parameters_may_come_with_another_history_and_other_tools(world: World) -> None:
    def change(runner: ToolRunner, _: Message) -> None:
        runner.set_params(messages=[user("in short")], tools=["echo"], tool_choice="echo", top_p=0.5)

    await mutate_once(world.runner(assistant("dull"), calls(ECHO), assistant("done")), 0, change)
    _, second, third = world.model.asked
    assert second.messages == [user("in short")]
    assert [tool["function"]["name"] for tool in second.tools or ()] == ["w__echo"]
    assert (second.tool_choice, third.tool_choice) == (FORCED_ECHO, None)
    assert second.parameters == third.parameters == {"top_p": 0.5}


async def test_parameters_hold_after_a_restart(world: World) -> None:
    runner = world.runner(calls(ADD), ModelUnavailable("down"))
    runner.set_params(temperature=0.1)
    runner.set_params(top_p=0.5, temperature=0.2)
    with pytest.raises(ModelUnavailable):
        await runner.until_done()
    state = State.from_json(world.state.to_json())
    await world.runner(assistant("done"), state=state).until_done()
    assert world.model.asked[0].parameters == {"temperature": 0.2, "top_p": 0.5}


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"temprature": 1}, "'temprature' is no parameter of a request; did you mean 'temperature'?"),
        ({"temperature": -1}, "temperature: "),
        ({"max_tokens": 0}, "max_tokens: "),
        ({"extra": {"messages": []}}, "extra: .*set by the client itself"),
    ],
)
async def test_parameters_that_cannot_be_change_nothing(world: World, said: dict[str, Any], problem: str) -> None:
    runner = world.runner()
    before = world.state.to_json()
    with pytest.raises(ParametersInvalid, match=problem):
        runner.set_params(messages=[], tools=[], **said)
    assert world.state.to_json() == before


async def test_tools_and_choices_that_cannot_be_are_errors(world: World) -> None:
    with pytest.raises(ToolsInvalid):
        world.runner().set_params(tools=["nope"])
    with pytest.raises(ToolChoiceInvalid):
        world.runner().set_params(tool_choice="nope")


def test_what_is_not_said_is_not_sent() -> None:
    assert checked_parameters({}) == {}
    assert checked_parameters({"temperature": None, "extra": {"top_k": 3}}) == {
        "temperature": None,
        "extra": {"top_k": 3},
    }


async def debug_of(world: World, *lines: Any, **options: Any) -> list[dict[str, Any]]:
    await world.runner(*lines, **options).until_done()
    return [entry["metadata"].get("debug", {}) for entry in world.state.tool_results]


async def test_u17_each_call_says_how_long_it_took_who_answered_and_whether_it_was_forced(world: World) -> None:
    lines = (calls(ADD, ECHO), calls(("b", *ADD[1:])), assistant("done"))
    first, other, later = await debug_of(world, *lines, tool_choice="w::add")
    assert first.keys() == {"seconds", "attempts", "engine", "forced", "exclusive"}
    assert 0 <= first["seconds"] < 60
    assert (first["attempts"], first["engine"]) == (1, "here")
    assert [each["forced"] for each in (first, other, later)] == [True, False, False]


async def test_u17_a_forced_call_is_known_as_one_after_a_restart(world: World) -> None:
    world.state.append_reply(calls(ADD), finish_reason="tool_calls", input_tokens=1, output_tokens=1)
    (debug,) = await debug_of(world, assistant("done"), tool_choice="w::add")
    assert debug["forced"] is True


async def test_u17_a_call_that_nobody_ran_has_no_debug_data_and_neither_has_the_engines_history(world: World) -> None:
    unknown, ran = await debug_of(world, calls(("u", "nope", {}), ADD), assistant("done"))
    assert (unknown, bool(ran)) == ({}, True)
    state = await world.engine.get_session_state("run.000001")
    assert state is not None
    restored = world.state.history_entries(world.tools.names)
    assert state["history"] == restored
    assert "debug" not in restored[0]["result"].get("metadata", {})


async def test_u17_a_call_of_an_exclusive_tool_says_so(world: World) -> None:
    alone = replace(world.tools.tools[0], metadata={"exclusive": True})
    (debug,) = await debug_of(world, calls(ADD), assistant("done"), tools=ToolSelection.of([alone]))
    assert debug["exclusive"] is True
