"""Calls that somebody outside answers, as the loop sees them (rules S1-S18): paused, answered, gone on with."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from conversations.errors import HistoryInvalid
from conversations.messages import assistant, user
from conversations.policy.limits import Limits
from conversations.selection import ToolSelection
from conversations.state import State
from engines.tool import ErrorType, Tool, ToolCall, ToolResult
from tests.support import counting_tools
from tests.support.loop_world import ADD, World, assert_each_request_was_valid, assert_valid, world_of
from tests.support.scripted_model import Line, calls

ASK = Tool("ask", "people", parameters={"type": "object", "properties": {"what": {"type": "string"}}})


def asking(call_id: str, what: str = "?") -> tuple[str, str, dict[str, Any]]:
    return call_id, "people__ask", {"what": what}


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with world_of() as made:
        made.tools = ToolSelection.of([*made.tools.tools, ASK], external=["people::ask"])
        yield made


async def go_on(world: World, answers: Mapping[str, Any], *lines: Line, limits: Limits | None = None) -> State:
    """Resume from the stored state alone, in a runner of its own, with these results by call id."""
    world.state = State.from_json(world.state.to_json())
    runner = world.runner(*lines, limits=limits)
    runner.answer([ToolResult(call_id, "people::ask", said) for call_id, said in answers.items()])
    await runner.until_done()
    assert_each_request_was_valid(world)
    return world.state


async def test_s1_s4_s7_a_call_of_a_tool_that_is_declared_external_pauses_and_is_told_in_structure(
    world: World,
) -> None:
    runner = world.runner(calls(asking("q", "May I?")))
    await runner.until_done()
    assert (world.state.status, len(world.model.asked)) == ("awaiting_tool_results", 1)
    assert [call.to_dict() for call in runner.pending_calls()] == [
        {"name": "people::ask", "arguments": {"what": "May I?"}, "id": "q"}
    ]
    assert world.state.messages == [user("hi"), calls(asking("q", "May I?"))]


async def test_s2_a_tool_that_nobody_declared_is_an_error_and_nobody_is_asked(world: World) -> None:
    runner = world.runner(calls(("n", "people__nope", {})), assistant("done"))
    await runner.until_done()
    assert world.state.tool_results[0]["error_type"] == "unknown_tool"
    assert (world.state.status, runner.pending_calls()) == ("completed", [])


async def test_s6_external_calls_over_the_limit_are_answered_and_the_others_wait(world: World) -> None:
    many = [asking(f"q{number}", str(number)) for number in range(7)]
    await world.runner(calls(*many), limits=Limits(max_tool_calls=5)).until_done()
    assert world.state.pending == [f"q{number}" for number in range(5)]
    assert [entry["error_type"] for entry in world.state.tool_results] == ["limit", "limit"]
    await go_on(world, {f"q{number}": number for number in range(5)}, assistant("done"))
    assert len(world.state.tool_results) == 7
    assert world.state.status == "completed"


async def test_s9_three_pauses_one_after_the_other_each_resumed_from_the_state_alone(world: World) -> None:
    await world.runner(calls(asking("q1"), ADD)).until_done()
    for number in (1, 2):
        state = await go_on(world, {f"q{number}": f"answer {number}"}, calls(asking(f"q{number + 1}", str(number))))
        assert state.status == "awaiting_tool_results"
    state = await go_on(world, {"q3": "answer 3"}, assistant("done"))
    assert (state.status, state.turns, state.tool_calls) == ("completed", 4, 4)
    told = [message["content"] for message in state.messages if message["role"] == "tool"]
    assert told == ["answer 1", "3", "answer 2", "answer 3"]
    assert counting_tools.RUNS == [("add", (1, 2))]


async def test_s10_s11_turns_before_a_pause_count_after_it_and_the_limit_is_an_error(world: World) -> None:
    limits = Limits(max_turns=2)
    await world.runner(calls(asking("q1")), limits=limits).until_done()
    state = await go_on(world, {"q1": "yes"}, calls(asking("q2")), limits=limits)
    assert (state.status, (state.error or {})["type"]) == ("error", "max_turns")
    assert_valid(state.messages)


async def test_s13_waiting_is_no_end(world: World) -> None:
    await world.runner(calls(asking("q"))).until_done()
    last = await world.runner().until_done()
    assert (world.state.status, last) == ("awaiting_tool_results", calls(asking("q")))
    assert (await go_on(world, {"q": "yes"}, assistant("done"))).status == "completed"


@pytest.mark.parametrize("call_id", ["nobody", "a"])
async def test_s17_an_answer_that_nothing_waits_for_is_an_error_and_changes_nothing(world: World, call_id: str) -> None:
    await world.runner(calls(asking("q"))).until_done()
    before = world.state.to_json()
    runner = world.runner()
    with pytest.raises(HistoryInvalid, match=f"no external call waits for a result of '{call_id}'"):
        runner.answer([ToolResult("q", "people::ask", "yes"), ToolResult(call_id, "people::ask", "?")])
    assert world.state.to_json() == before


async def test_s17_a_completed_conversation_takes_no_answer(world: World) -> None:
    await world.runner(assistant("done")).until_done()
    with pytest.raises(HistoryInvalid, match=r"pending: \[\]"):
        world.runner().answer([ToolResult("q", "people::ask", "yes")])


async def test_s8_s12_of_two_calls_to_one_tool_each_gets_its_own_result_or_error(world: World) -> None:
    await world.runner(calls(asking("x", "1"), asking("y", "2"))).until_done()
    runner = world.runner(assistant("done"))
    runner.answer([ToolResult("y", "people::ask", error="he left", error_type=ErrorType.external)])
    runner.answer([ToolResult("x", "people::ask", "yes")])
    await runner.until_done()
    assert [message["content"] for message in world.state.messages[2:4]] == ["yes", "Error: he left"]


async def test_a_pause_whose_call_is_answered_by_hand_goes_on(world: World) -> None:
    await world.runner(calls(asking("q"))).until_done()
    runner = world.runner(assistant("done"))
    assert runner.pending_calls() == [ToolCall("ask", "people", {"what": "?"}, "q")]
    runner.append_messages({"role": "tool", "tool_call_id": "q", "content": "by hand"})
    await runner.until_done()
    assert (world.state.status, world.state.pending) == ("completed", [])


async def test_u9_the_second_of_two_equal_calls_still_waits_when_the_first_was_answered_by_hand(world: World) -> None:
    await world.runner(calls(asking("x"), asking("y"))).until_done()
    runner = world.runner(assistant("done"))
    assert [call.call_id for call in runner.pending_calls()] == ["x"]
    runner.append_messages({"role": "tool", "tool_call_id": "x", "content": "by hand"})
    assert [call.call_id for call in runner.pending_calls()] == ["y"]
    runner.answer([ToolResult("y", "people::ask", "yes")])
    await runner.until_done()
    assert [message["content"] for message in world.state.messages[2:]] == ["by hand", "yes", "done"]
