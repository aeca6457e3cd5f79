"""The loop against a scripted model and the real local engine (rules A1-A15, decisions 1-3, 6, U10, U19, U20)."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from conversations.errors import HistoryInvalid, ModelUnavailable, RunnerUsed, ToolChoiceInvalid
from conversations.messages import Message, assistant, system, tool_message, user
from conversations.models.kinds import build_model
from conversations.models.settings import ModelSettings
from conversations.policy.limits import Limits
from conversations.runner import ToolRunner
from conversations.selection import ToolSelection
from conversations.state import State
from engines.engine import ToolEngine
from engines.local.engine import LocalEngine
from engines.local.functions import LocalFunction, bound
from engines.tool import ErrorType, Tool, ToolCall, ToolResult
from engines.toolset import Toolset
from tests.support import counting_tools
from tests.support.loop_world import (
    ADD,
    ECHO,
    SESSION,
    World,
    assert_each_request_was_valid,
    assert_valid,
    mutate_once,
    world_of,
)
from tests.support.noting_encoder import noting_encoder
from tests.support.scripted_model import Line, ScriptedModel, calls, reply, script


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with world_of() as made:
        yield made


@pytest.fixture
async def desk() -> AsyncIterator[World]:
    async with world_of(with_hand_over=True) as made:
        yield made


async def test_a1_the_loop_asks_runs_and_asks_until_there_is_no_call(world: World) -> None:
    runner = world.runner(calls(ADD), calls(ECHO), assistant("done"))
    yielded = [message async for message in runner]
    assert world.state.messages == [user("hi"), *yielded]
    assert yielded == [
        calls(ADD),
        tool_message("a", "3"),
        calls(ECHO),
        tool_message("e", "x"),
        assistant("done"),
    ]
    assert world.asked == [["user"], ["user", "assistant", "tool"], ["user", "assistant", "tool", "assistant", "tool"]]
    assert (world.state.status, world.state.error) == ("completed", None)
    assert (world.state.turns, world.state.tool_calls) == (3, 2)
    assert (world.state.input_tokens, world.state.output_tokens) == (30, 15)
    assert [entry["name"] for entry in world.state.tool_results] == ["w::add", "w::echo"]


async def test_the_state_is_whole_at_every_yield(world: World) -> None:
    two = ("b", "w__echo", {"text": "y"})
    async for message in world.runner(calls(ADD, two), assistant("done")):
        assert any(message is kept for kept in world.state.messages)
        if message["role"] == "tool":
            assert_valid(world.state.messages)
        assert State.from_json(world.state.to_json()) == world.state


async def test_a_request_carries_the_tools_once_encoded_the_session_and_a_seed_per_turn(world: World) -> None:
    await world.runner(calls(ADD), assistant("done"), seed=7).until_done()
    first, second = world.model.asked
    assert first.tools is second.tools is world.tools.native
    assert first.encoded_tools is second.encoded_tools is world.tools.encoded
    assert first.session_id == SESSION
    assert first.seed is not None
    assert 0 <= first.seed < 2**31
    assert first.seed != second.seed
    again = script(assistant("x"))
    state = State()
    state.append(user("hi"))
    await ToolRunner(
        model=again, engine=world.engine, session_id=SESSION, state=state, tools=world.tools, limits=Limits(), seed=7
    ).until_done()
    assert again.asked[0].seed == first.seed


async def test_a_job_without_tools_sends_none(world: World) -> None:
    await world.runner(assistant("x"), tools=ToolSelection.of([]), tool_choice="auto").until_done()
    asked = world.model.asked[0]
    assert (asked.tools, asked.encoded_tools, asked.tool_choice) == (None, None, None)


async def test_u6_a_forced_choice_holds_for_the_first_request_only(world: World) -> None:
    await world.runner(calls(ADD), assistant("x"), tool_choice="w::add").until_done()
    forced = {"type": "function", "function": {"name": "w__add"}}
    assert [asked.tool_choice for asked in world.model.asked] == [forced, None]


async def test_a_choice_that_forces_nothing_holds_for_every_request(world: World) -> None:
    await world.runner(calls(ADD), assistant("x"), tool_choice="auto").until_done()
    assert [asked.tool_choice for asked in world.model.asked] == ["auto", "auto"]


async def test_a_choice_of_a_tool_that_is_not_offered_is_refused(world: World) -> None:
    with pytest.raises(ToolChoiceInvalid):
        world.runner(tool_choice="w::nope")


# Mutation (decision 3)


async def test_a2_a_message_without_calls_is_taken_back_when_the_caller_appends(world: World) -> None:
    runner = world.runner(assistant("rejected"), assistant("better"))
    await mutate_once(runner, 0, lambda runner, _: runner.append_messages(user("try again")))
    assert world.state.messages == [user("hi"), user("try again"), assistant("better")]
    assert (world.state.status, world.state.turns) == ("completed", 2)


async def test_a2_appending_twice_takes_the_message_back_once(world: World) -> None:
    def change(runner: ToolRunner, _: Message) -> None:
        runner.append_messages(user("1"))
        runner.append_messages(user("2"))

    await mutate_once(world.runner(assistant("rejected"), assistant("better")), 0, change)
    assert world.state.messages == [user("hi"), user("1"), user("2"), assistant("better")]


async def test_a3_a_history_that_ends_in_an_assistant_text_ends_the_loop(world: World) -> None:
    def change(runner: ToolRunner, _: Message) -> None:
        runner.set_messages([user("hi"), assistant("edited")])

    await mutate_once(world.runner(assistant("original")), 0, change)
    assert world.state.messages == [user("hi"), assistant("edited")]
    assert (world.state.status, len(world.model.asked)) == ("completed", 1)


async def test_a4_pushing_the_message_and_its_results_runs_the_tools_once(world: World) -> None:
    async def change(runner: ToolRunner, message: Message) -> None:
        results = await runner.tool_response()
        runner.append_messages(message, *results)

    yielded = await mutate_once(world.runner(calls(ADD), assistant("done")), 0, change)
    assert counting_tools.RUNS == [("add", (1, 2))]
    assert world.state.messages == [user("hi"), calls(ADD), tool_message("a", "3"), assistant("done")]
    assert [message["role"] for message in yielded] == ["assistant", "assistant"]
    assert_each_request_was_valid(world)


async def test_a5_an_unrelated_push_keeps_the_calls_and_their_results_before_it(world: World) -> None:
    def change(runner: ToolRunner, _: Message) -> None:
        runner.append_messages(user("be concise"))

    yielded = await mutate_once(world.runner(calls(ADD), assistant("done")), 0, change)
    assert world.state.messages == [
        user("hi"),
        calls(ADD),
        tool_message("a", "3"),
        user("be concise"),
        assistant("done"),
    ]
    assert len(world.model.asked) == 2
    assert counting_tools.RUNS == [("add", (1, 2))]
    assert [message["role"] for message in yielded] == ["assistant", "tool", "assistant"]
    assert_each_request_was_valid(world)


async def test_a6_asking_for_the_results_twice_runs_the_tools_once(world: World) -> None:
    async def change(runner: ToolRunner, _: Message) -> None:
        first = await runner.tool_response()
        runner.append_messages(user("and now"))
        assert await runner.tool_response() == first == [tool_message("a", "3")]

    await mutate_once(world.runner(calls(ADD), assistant("done")), 0, change)
    assert counting_tools.RUNS == [("add", (1, 2))]
    assert_valid(world.state.messages)


async def test_a6_there_are_no_results_where_there_are_no_calls(world: World) -> None:
    async def change(runner: ToolRunner, _: Message) -> None:
        assert await runner.tool_response() == []

    await mutate_once(world.runner(assistant("done")), 0, change)
    assert await world.runner().tool_response() == []


async def test_a7_set_messages_is_a_mutation_too(world: World) -> None:
    def change(runner: ToolRunner, _: Message) -> None:
        runner.set_messages([*runner.state.messages[:-1], user("try again")])

    await mutate_once(world.runner(assistant("rejected"), assistant("better")), 0, change)
    assert world.state.messages == [user("hi"), user("try again"), assistant("better")]


async def test_a7_set_messages_that_drops_open_calls_gets_them_back_before_what_it_added(world: World) -> None:
    def change(runner: ToolRunner, _: Message) -> None:
        runner.set_messages([user("hi"), user("be concise")])

    await mutate_once(world.runner(calls(ADD), assistant("done")), 0, change)
    assert world.state.messages[1:4] == [calls(ADD), tool_message("a", "3"), user("be concise")]
    assert_each_request_was_valid(world)


async def test_a_rewritten_history_gets_the_open_calls_at_its_end(world: World) -> None:
    def change(runner: ToolRunner, _: Message) -> None:
        runner.set_messages([system("s"), user("what was said so far, in short")])

    await mutate_once(world.runner(calls(ADD), assistant("done")), 0, change)
    assert [message["role"] for message in world.state.messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert_each_request_was_valid(world)


async def test_an_edited_copy_of_the_message_stands_in_its_place(world: World) -> None:
    def change(runner: ToolRunner, _: Message) -> None:
        runner.append_messages(calls(("a", "w__add", {"a": 40, "b": 2})))

    await mutate_once(world.runner(calls(ADD), assistant("done")), 0, change)
    assert counting_tools.RUNS == [("add", (40, 2))]
    assert len(world.state.messages) == 4
    assert_each_request_was_valid(world)


async def test_results_that_the_caller_gives_are_not_run(world: World) -> None:
    def change(runner: ToolRunner, _: Message) -> None:
        runner.append_messages(tool_message("e", "by hand"), user("go on"))

    await mutate_once(world.runner(calls(ADD, ECHO), assistant("done")), 0, change)
    assert counting_tools.RUNS == [("add", (1, 2))]
    assert world.state.messages[2:5] == [tool_message("a", "3"), tool_message("e", "by hand"), user("go on")]
    assert_each_request_was_valid(world)


async def test_calls_whose_results_were_cut_out_get_them_again_and_do_not_run_again(world: World) -> None:
    def change(runner: ToolRunner, _: Message) -> None:
        runner.set_messages(runner.state.messages[:2])

    yielded = await mutate_once(world.runner(calls(ADD, ECHO), assistant("done")), 1, change)
    assert counting_tools.RUNS == [("add", (1, 2)), ("echo", "x")]
    assert len(world.state.tool_results) == 2
    assert [message["role"] for message in yielded] == ["assistant", "tool", "tool", "tool", "assistant"]
    assert_each_request_was_valid(world)


async def test_a_change_while_looking_at_a_result_comes_after_all_results(world: World) -> None:
    def change(runner: ToolRunner, _: Message) -> None:
        runner.append_messages(user("go on"))

    await mutate_once(world.runner(calls(ADD, ECHO), assistant("done")), 1, change)
    assert [message["role"] for message in world.state.messages] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "user",
        "assistant",
    ]


async def test_a_history_may_be_put_in_short_once_the_results_are_there(world: World) -> None:
    def change(runner: ToolRunner, _: Message) -> None:
        runner.set_messages([user("in short")])

    yielded = await mutate_once(world.runner(calls(ADD, ECHO), assistant("done")), 1, change)
    assert world.state.messages == [user("in short"), assistant("done")]
    assert [message["role"] for message in yielded] == ["assistant", "tool", "assistant"]


async def test_a_call_id_that_the_caller_used_is_taken(world: World) -> None:
    def change(runner: ToolRunner, _: Message) -> None:
        runner.append_messages(calls(ADD), user("run it"))

    await mutate_once(world.runner(assistant("x"), calls(ADD), assistant("done")), 0, change)
    assert counting_tools.RUNS == [("add", (1, 2)), ("add", (1, 2))]
    assert_each_request_was_valid(world)


async def test_a_refusal_is_not_the_end_when_the_caller_goes_on(world: World) -> None:
    runner = world.runner(reply(assistant("I cannot"), "content_filter"), assistant("done"))
    await mutate_once(runner, 0, lambda runner, _: runner.append_messages(user("please")))
    assert world.state.status == "completed"


async def test_an_edited_message_stays_edited_when_it_has_to_come_back(world: World) -> None:
    def change(runner: ToolRunner, _: Message) -> None:
        runner.append_messages(calls(("a", "w__add", {"a": 40, "b": 2})))
        runner.set_messages([user("hi")])

    await mutate_once(world.runner(calls(ADD), assistant("done")), 0, change)
    assert counting_tools.RUNS == [("add", (40, 2))]


async def test_a_call_id_of_a_call_that_is_no_longer_in_the_history_is_taken_after_a_restart(world: World) -> None:
    def change(runner: ToolRunner, _: Message) -> None:
        runner.set_messages([user("in short")])

    with pytest.raises(ModelUnavailable):
        await mutate_once(world.runner(calls(ECHO), ModelUnavailable("down")), 1, change)
    other = ("e", "w__echo", {"text": "something else"})
    await world.runner(calls(other), assistant("done")).until_done()
    assert counting_tools.RUNS == [("echo", "x"), ("echo", "something else")]


async def test_a_change_that_cannot_be_mended_changes_nothing(world: World) -> None:
    def change(runner: ToolRunner, _: Message) -> None:
        before = runner.state.to_json()
        with pytest.raises(HistoryInvalid):
            runner.append_messages(tool_message("nobody", "x"))
        with pytest.raises(HistoryInvalid):
            runner.set_messages([tool_message("nobody", "x")])
        assert runner.state.to_json() == before

    await mutate_once(world.runner(assistant("done")), 0, change)
    assert world.state.messages == [user("hi"), assistant("done")]


async def test_messages_may_be_appended_before_the_start(world: World) -> None:
    runner = world.runner(assistant("done"))
    runner.append_messages(user("also"))
    await runner.until_done()
    assert world.state.messages == [user("hi"), user("also"), assistant("done")]


async def test_a_message_that_stays_is_not_encoded_again_by_an_append(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded = noting_encoder(monkeypatch)
    await mutate_once(
        world.runner(calls(ADD), assistant("done")), 0, lambda runner, _: runner.append_messages(user("be concise"))
    )
    world.state.encoded_messages()
    encoded_ids = [id(value) for value in encoded]
    assert len(encoded_ids) == len(set(encoded_ids)) == len(world.state.messages)


# Errors are results (decisions 2 and 6)


async def test_a8_decision_6_an_unknown_tool_is_an_error_result_that_names_the_known_ones(world: World) -> None:
    await world.runner(calls(("a", "w__sub", {})), assistant("done")).until_done()
    entry = world.state.tool_results[0]
    assert (entry["name"], entry["error_type"]) == ("w__sub", "unknown_tool")
    assert entry["error"] == "Unknown tool 'w__sub'; known tools: w__add, w__echo, w__fail."
    assert world.state.messages[2] == tool_message("a", f"Error: {entry['error']}")
    assert world.state.status == "completed"


async def test_a_tool_that_exists_but_is_not_offered_is_unknown(world: World) -> None:
    tools = ToolSelection.of([tool for tool in world.tools.tools if tool.name == "add"])
    await world.runner(calls(ECHO), assistant("done"), tools=tools).until_done()
    assert counting_tools.RUNS == []
    assert world.state.tool_results[0]["error_type"] == "unknown_tool"


async def test_a9_a_tool_that_raises_is_an_error_result(world: World) -> None:
    await world.runner(calls(("f", "w__fail", {"reason": "broken"})), assistant("done")).until_done()
    assert world.state.tool_results[0]["error_type"] == "execution"
    assert "broken" in world.state.messages[2]["content"]
    assert world.state.status == "completed"


@pytest.mark.parametrize("arguments", ['{"a": 1', {"a": "one", "b": 2}, {"a": 1}, {"a": 1, "b": 2, "c": 3}])
async def test_a10_wrong_arguments_are_a_validation_error_result(world: World, arguments: Any) -> None:
    await world.runner(calls(("a", "w__add", arguments)), assistant("done")).until_done()
    assert counting_tools.RUNS == []
    assert world.state.tool_results[0]["error_type"] == "validation"
    assert world.state.status == "completed"


async def test_decision_2_on_error_raise_ends_the_conversation_before_the_turn() -> None:
    async with world_of(defaults={"on_error": "raise"}) as world:
        runner = world.runner(calls(ADD), calls(ECHO, ("f", "w__fail", {"reason": "broken"})))
        last = await runner.until_done()
        assert world.state.messages == [user("hi"), calls(ADD), tool_message("a", "3")]
        assert last == tool_message("a", "3")
        assert world.state.status == "error"
        assert world.state.error is not None
        assert world.state.error["type"] == "tool_failed"
        assert "broken" in world.state.error["message"]
        assert world.state.turns == 2
        assert State.from_json(world.state.to_json()) == world.state


async def test_a_model_error_reaches_the_caller_and_the_state_can_go_on(world: World) -> None:
    runner = world.runner(calls(ADD), ModelUnavailable("down"))
    with pytest.raises(ModelUnavailable):
        await runner.until_done()
    assert world.state.messages == [user("hi"), calls(ADD), tool_message("a", "3")]
    assert (world.state.status, world.state.turns) == (None, 1)
    await world.runner(assistant("done")).until_done()
    assert world.state.status == "completed"
    assert counting_tools.RUNS == [("add", (1, 2))]


# Batches and limits


class OneBatch(ToolEngine):
    """Notes the batches it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[list[str]] = []

    async def execute(self, session_id: str, tool_calls: Sequence[ToolCall]) -> list[ToolResult]:
        self.batches.append([call.qualified_name for call in tool_calls])
        return [ToolResult(call.call_id, call.qualified_name, result=call.call_id) for call in tool_calls]

    async def _call(self, session: object, call: ToolCall, tool: object) -> Any:
        raise AssertionError


async def test_a11_the_engine_gets_all_calls_of_a_batch_at_once(world: World) -> None:
    engine = OneBatch()
    await world.runner(calls(ADD, ("u", "w__nope", {}), ECHO), assistant("done"), engine=engine).until_done()
    assert engine.batches == [["w::add", "w::echo"]]
    assert [entry["call_id"] for entry in world.state.tool_results] == ["a", "u", "e"]
    assert_valid(world.state.messages)


async def test_a_batch_of_refused_calls_does_not_bother_the_engine(world: World) -> None:
    engine = OneBatch()
    await world.runner(calls(("u", "w__nope", {})), assistant("done"), engine=engine).until_done()
    assert engine.batches == []


async def test_a12_max_turns_counts_requests_and_answers_pending_calls(world: World) -> None:
    runner = world.runner(calls(ADD), calls(ECHO), limits=Limits(max_turns=2))
    last = await runner.until_done()
    assert len(world.model.asked) == 2
    assert counting_tools.RUNS == [("add", (1, 2))]
    assert last["tool_call_id"] == "e"
    assert world.state.tool_results[1]["error_type"] == "limit"
    assert world.state.status == "error"
    assert (world.state.error or {})["type"] == "max_turns"
    assert_valid(world.state.messages)


async def test_s10_the_count_of_turns_goes_on_after_a_restart(world: World) -> None:
    with pytest.raises(ModelUnavailable):
        await world.runner(calls(ADD), ModelUnavailable("down"), limits=Limits(max_turns=2)).until_done()
    state = State.from_json(world.state.to_json())
    await world.runner(calls(ECHO), state=state, limits=Limits(max_turns=2)).until_done()
    assert (state.error or {})["type"] == "max_turns"


@pytest.mark.parametrize(
    ("message", "reason", "type_"),
    [
        (calls(ADD), "content_filter", "content_filter"),
        (calls(ADD) | {"refusal": "I will not"}, "stop", "refusal"),
        (assistant() | {"refusal": "I will not"}, "stop", "refusal"),
        (calls(ADD), "length", "truncated_tool_call"),
        (calls(("a", "w__add", '{"a": 1')), "length", "truncated_tool_call"),
        (assistant("and then"), "length", "truncated_reply"),
    ],
)
async def test_a13_a_reply_that_is_withheld_or_cut_off_ends_the_conversation_and_runs_nothing(
    world: World, message: Message, reason: str, type_: str
) -> None:
    await world.runner(reply(message, reason)).until_done()
    assert counting_tools.RUNS == []
    assert (world.state.status, (world.state.error or {})["type"]) == ("error", type_)
    assert_valid(world.state.messages)


async def test_a14_a_reply_that_pauses_is_sent_back(world: World) -> None:
    await world.runner(reply(assistant("hm"), "pause_turn"), assistant("done")).until_done()
    assert world.asked == [["user"], ["user", "assistant"]]


async def test_a15_a_runner_is_iterated_once(world: World) -> None:
    runner = world.runner(assistant("done"))
    await runner.until_done()
    with pytest.raises(RunnerUsed):
        await runner.until_done()


async def test_u10_calls_over_the_limit_of_a_turn_get_limit_errors(world: World) -> None:
    many = [(f"c{number}", "w__echo", {"text": str(number)}) for number in range(5)]
    await world.runner(calls(*many), assistant("done"), limits=Limits(max_tool_calls=3)).until_done()
    assert counting_tools.RUNS == [("echo", "0"), ("echo", "1"), ("echo", "2")]
    assert [entry["error_type"] for entry in world.state.tool_results] == [None, None, None, "limit", "limit"]
    assert_each_request_was_valid(world)


async def test_decision_4_the_call_limit_comes_before_the_unknown_tool(world: World) -> None:
    await world.runner(calls(ADD, ("u", "nope", {})), assistant("done"), limits=Limits(max_tool_calls=1)).until_done()
    assert world.state.tool_results[1]["error_type"] == "limit"


async def test_u19_empty_and_repeated_call_ids_are_replaced(world: World) -> None:
    same, other = ("x", "w__echo", {"text": "1"}), ("x", "w__echo", {"text": "2"})
    runner = world.runner(calls(("", "w__echo", {"text": "0"}), same, other), calls(same), assistant("done"))
    await runner.until_done()
    assert len(counting_tools.RUNS) == 4
    assert_each_request_was_valid(world)
    assert [entry["call_id"] for entry in world.state.tool_results] == ["call_1_0", "x", "call_1_2", "call_5_0"]


async def test_u20_the_last_turn_goes_without_tools_when_it_must_end_in_an_answer(world: World) -> None:
    limits = Limits(max_turns=2, on_max_turns="answer")
    await world.runner(calls(ADD), assistant("done"), limits=limits, tool_choice="auto").until_done()
    last = world.model.asked[1]
    assert (last.tools, last.encoded_tools, last.tool_choice) == (None, None, None)
    assert world.state.status == "completed"


async def test_sec_s19_an_endless_loop_of_calls_stops_at_the_budget(world: World) -> None:
    lines: list[Line] = [lambda _: calls(("", "w__echo", {"text": "again"}))] * 100
    runner = world.runner(*lines, limits=Limits(max_turns=1000, max_total_tool_calls=7))
    await runner.until_done()
    assert len(counting_tools.RUNS) == 7
    assert (world.state.error or {})["type"] == "budget"
    assert_valid(world.state.messages)


async def test_sec_s19_tokens_are_a_budget(world: World) -> None:
    lines: list[Line] = [lambda _: calls(("", "w__echo", {"text": "again"}))] * 100
    await world.runner(*lines, limits=Limits(max_turns=1000, max_total_tokens=45)).until_done()
    assert world.state.turns == 3
    assert (world.state.error or {})["type"] == "budget"


class Hanging(ScriptedModel):
    async def ask(self, request: Any) -> Any:
        await asyncio.Event().wait()


async def test_sec_s19_a_model_that_hangs_ends_at_the_time_budget(world: World) -> None:
    runner = ToolRunner(
        model=Hanging([]),
        engine=world.engine,
        session_id=SESSION,
        state=world.state,
        tools=world.tools,
        limits=Limits(max_seconds=0.01),
    )
    await runner.until_done()
    assert (world.state.error or {})["type"] == "budget"
    assert world.state.messages == [user("hi")]


class HangingEngine(OneBatch):
    async def execute(self, session_id: str, tool_calls: Sequence[ToolCall]) -> list[ToolResult]:
        await asyncio.Event().wait()
        raise AssertionError


async def test_sec_s19_a_tool_that_hangs_ends_at_the_time_budget_with_an_answer(world: World) -> None:
    runner = world.runner(calls(ADD), engine=HangingEngine(), limits=Limits(max_seconds=0.01))
    await runner.until_done()
    assert world.state.tool_results[0]["error_type"] == "timeout"
    assert (world.state.error or {})["type"] == "budget"
    assert_valid(world.state.messages)


# Beginning in the middle


async def test_a_state_with_unanswered_calls_runs_just_those(world: World) -> None:
    world.state.append(calls(ADD, ECHO, ("c", "w__add", {"a": 2, "b": 2})), tool_message("e", "x"))
    yielded = [message async for message in world.runner(assistant("done"))]
    assert counting_tools.RUNS == [("add", (1, 2)), ("add", (2, 2))]
    assert yielded == [tool_message("a", "3"), tool_message("c", "4"), assistant("done")]
    assert_each_request_was_valid(world)


async def test_a_call_with_a_kept_result_is_not_run_again_after_a_crash(world: World) -> None:
    world.state.append(calls(ADD))
    world.state.append_results(
        [{"call_id": "a", "name": "w::add", "result": 3, "error": None, "error_type": None, "metadata": {}}]
    )
    await world.runner(assistant("done")).until_done()
    assert counting_tools.RUNS == []
    assert world.state.messages[2] == tool_message("a", "3")


async def test_a_cancelled_batch_leaves_the_state_as_it_was(world: World) -> None:
    runner = world.runner(calls(ADD), engine=HangingEngine())
    task = asyncio.create_task(runner.until_done())
    while world.state.turns == 0:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert world.state.messages == [user("hi"), calls(ADD)]
    await world.runner(assistant("done")).until_done()
    assert counting_tools.RUNS == [("add", (1, 2))]


async def test_a_job_whose_messages_are_sloppy_is_mended_before_the_first_request(world: World) -> None:
    world.state.append(calls(("", "w__add", "{}")), user("go on"), tool_message("", "3"))
    await world.runner(assistant("done")).until_done()
    assert world.asked == [["user", "assistant", "tool", "user"]]
    assert_each_request_was_valid(world)


async def test_a_job_whose_messages_cannot_be_mended_is_refused(world: World) -> None:
    world.state.append(tool_message("nobody", "3"))
    with pytest.raises(HistoryInvalid):
        world.runner()


# Calls that somebody else runs (decision 5)


async def test_s5_external_calls_pause_after_the_engines_calls_ran(world: World) -> None:
    external = ToolSelection.of(world.tools.tools, external=["w::echo"])
    last = await world.runner(calls(ADD, ECHO, ("c", "w__add", {"a": 2, "b": 2})), tools=external).until_done()
    assert world.state.status == "awaiting_tool_results"
    assert [entry["call_id"] for entry in world.state.tool_results] == ["a", "c"]
    assert last["tool_call_id"] == "c"
    assert world.runner(tools=external).pending_calls() == [ToolCall("echo", "w", {"text": "x"}, "e")]
    state = State.from_json(world.state.to_json())
    runner = world.runner(assistant("done"), tools=external, state=state)
    with pytest.raises(HistoryInvalid, match="no external call waits for a result of 'zz'"):
        runner.answer([ToolResult("zz", "w::echo", result="?")])
    runner.answer([ToolResult("e", "w::echo", result="from outside")])
    runner.answer([ToolResult("e", "w::echo", result="again")])
    await runner.until_done()
    assert state.status == "completed"
    assert [message.get("content") for message in state.messages[2:5]] == ["3", "from outside", "4"]
    assert counting_tools.RUNS == [("add", (1, 2)), ("add", (2, 2))]
    assert_each_request_was_valid(world)


async def test_s8_external_results_come_in_any_order(world: World) -> None:
    external = ToolSelection.of(world.tools.tools, external=["w::echo"])
    batch = calls(("x", "w__echo", {"text": "1"}), ADD, ("y", "w__echo", {"text": "2"}))
    await world.runner(batch, tools=external).until_done()
    assert world.state.pending == ["x", "y"]
    runner = world.runner(tools=external)
    runner.answer([ToolResult("y", "w::echo", result="2")])
    await runner.until_done()
    assert (world.state.status, world.state.pending) == ("awaiting_tool_results", ["x"])
    assert [message.get("content") for message in world.state.messages[2:]] == ["3", "2"]
    runner = world.runner(assistant("done"), tools=external)
    runner.answer([ToolResult("x", "w::echo", result="1")])
    await runner.until_done()
    assert [message.get("content") for message in world.state.messages[2:5]] == ["1", "3", "2"]
    assert (world.state.status, world.state.pending) == ("completed", [])


async def test_nobody_waits_for_an_external_call_that_the_caller_took_out(world: World) -> None:
    def change(runner: ToolRunner, _: Message) -> None:
        runner.set_messages([user("in short")])

    external = ToolSelection.of(world.tools.tools, external=["w::echo"])
    with pytest.raises(ModelUnavailable):
        await mutate_once(world.runner(calls(ADD, ECHO), ModelUnavailable("down"), tools=external), 1, change)
    assert world.state.pending == []
    same_id = ("e", "w__add", {"a": 2, "b": 2})
    await world.runner(calls(same_id), assistant("done"), tools=external).until_done()
    assert world.state.status == "completed"


async def test_an_external_call_with_wrong_arguments_is_answered_and_nobody_waits(world: World) -> None:
    external = ToolSelection.of(world.tools.tools, external=["w::echo"])
    wrong = calls(("x", "w__echo", {"text": 1}), ("y", "w__echo", '{"text"'))
    await world.runner(wrong, assistant("done"), tools=external).until_done()
    assert [entry["error_type"] for entry in world.state.tool_results] == ["validation", "validation"]
    assert world.state.tool_results[0]["error"] == 'text: 1 is not of type "string"'
    assert world.state.status == "completed"


async def test_s12_an_external_error_is_told_to_the_model(world: World) -> None:
    external = ToolSelection.of(world.tools.tools, external=["w::echo"])
    await world.runner(calls(ECHO), tools=external).until_done()
    runner = world.runner(assistant("done"), tools=external)
    runner.answer([ToolResult("e", "w::echo", error="no approval", error_type=ErrorType.external)])
    await runner.until_done()
    assert world.state.messages[2] == tool_message("e", "Error: no approval")


# With the model that ships


async def offline_conversation(world: World) -> State:
    state = State()
    state.append(user("add things up"))
    model = build_model(ModelSettings.model_validate({"provider": "offline", "offline": {"turns": 5}}))
    runner = ToolRunner(
        model=model, engine=world.engine, session_id=SESSION, state=state, tools=world.tools, limits=Limits(), seed=3
    )
    async for message in runner:
        assert message in state.messages
    return state


async def test_the_offline_model_makes_four_calls_and_a_text(world: World) -> None:
    state = await offline_conversation(world)
    assert (state.status, state.turns, state.tool_calls) == ("completed", 5, 4)
    assert [message["role"] for message in state.messages] == ["user", *["assistant", "tool"] * 4, "assistant"]
    assert_valid(state.messages)
    assert all(entry["error_type"] in {None, "execution"} for entry in state.tool_results)


async def test_the_same_seed_makes_the_same_conversation(world: World) -> None:
    first, second = await offline_conversation(world), await offline_conversation(world)
    assert first.messages == second.messages


# The tool manager's rules (U9-U16)

TWICE = [("a", "w__echo", {"text": "x"}), ("b", "w__echo", {"text": "x"})]
HAND_OVER = ("h", "w__hand_over", {"topic": "Oslo"})


async def test_u9_equal_calls_run_once_and_both_get_the_result(world: World) -> None:
    await world.runner(calls(*TWICE), assistant("done")).until_done()
    assert counting_tools.RUNS == [("echo", "x")]
    assert [message["content"] for message in world.state.messages if message["role"] == "tool"] == ["x", "x"]
    assert [entry["metadata"].get("duplicate_of") for entry in world.state.tool_results] == [None, "a"]
    assert world.state.tool_calls == 1
    assert_each_request_was_valid(world)


async def test_u9_a_failure_is_shared_too(world: World) -> None:
    same = [(call_id, "w__fail", {"reason": "no"}) for call_id in ("a", "b")]
    await world.runner(calls(*same), assistant("done")).until_done()
    assert [entry["error_type"] for entry in world.state.tool_results] == ["execution", "execution"]
    assert len(counting_tools.RUNS) == 1


async def test_u9_the_same_call_in_a_later_turn_runs_again(world: World) -> None:
    await world.runner(calls(TWICE[0]), calls(TWICE[1]), assistant("done")).until_done()
    assert len(counting_tools.RUNS) == 2


async def test_u9_equal_external_calls_are_asked_for_once_and_answered_together(world: World) -> None:
    tools = ToolSelection.of(world.tools.tools, external=["w::echo"])
    await world.runner(calls(*TWICE, ADD), tools=tools).until_done()
    runner = world.runner(assistant("done"), tools=tools)
    assert [call.call_id for call in runner.pending_calls()] == ["a"]
    runner.answer([ToolResult("a", "w::echo", "from outside")])
    await runner.until_done()
    answers = [message["content"] for message in world.state.messages if message["role"] == "tool"]
    assert answers[:2] == ["from outside", "from outside"]
    assert_valid(world.state.messages)


async def test_u9_a_first_call_that_the_caller_answered_leaves_the_second_its_own_run(world: World) -> None:
    runner = world.runner(calls(*TWICE), assistant("done"))
    async for message in runner:
        if message == calls(*TWICE):
            runner.set_messages([*world.state.messages, tool_message("a", "mine")])
    assert_valid(world.state.messages)
    assert counting_tools.RUNS == [("echo", "x")]


async def test_u10_duplicates_do_not_count_against_the_limit(world: World) -> None:
    await world.runner(calls(*TWICE, ADD), assistant("done"), limits=Limits(max_tool_calls=2)).until_done()
    assert [entry["error_type"] for entry in world.state.tool_results] == [None, None, None]


async def test_u12_a_tool_that_takes_control_ends_the_conversation_with_its_result(desk: World) -> None:
    await desk.runner(calls(HAND_OVER)).until_done()
    assert (desk.state.status, desk.state.turns) == ("completed", 1)
    assert desk.state.messages[-1] == tool_message("h", "All about Oslo.")
    assert desk.state.tool_results[0]["metadata"]["took_control"] is True


async def test_u12_one_that_fails_does_not(desk: World) -> None:
    broken = ("h", "w__hand_over", {"topic": "broken"})
    await desk.runner(calls(broken), assistant("sorry")).until_done()
    assert desk.state.messages[-1] == assistant("sorry")


async def test_u13_in_a_batch_nothing_runs_and_all_are_errors(desk: World) -> None:
    await desk.runner(calls(ADD, HAND_OVER), calls(HAND_OVER)).until_done()
    assert [entry["error_type"] for entry in desk.state.tool_results] == ["conflict", "conflict", None]
    assert counting_tools.RUNS == [("hand_over", "Oslo")]
    assert_each_request_was_valid(desk)


async def test_u14_two_equal_ones_are_one(desk: World) -> None:
    again = ("i", *HAND_OVER[1:])
    await desk.runner(calls(HAND_OVER, again)).until_done()
    assert (desk.state.status, len(counting_tools.RUNS)) == ("completed", 1)
    assert_valid(desk.state.messages)


async def test_decision_4_conflict_comes_before_the_limit_and_the_limit_before_unknown_tools(
    desk: World,
) -> None:
    unknown: Any = ("u", "nope", {})
    bad = ("v", "w__add", {"a": "x"})
    await desk.runner(calls(HAND_OVER, unknown), assistant("done"), limits=Limits(max_tool_calls=1)).until_done()
    assert {entry["error_type"] for entry in desk.state.tool_results} == {"conflict"}
    desk.state = State(messages=[user("hi")])
    await desk.runner(calls(ADD, unknown, bad), assistant("done"), limits=Limits(max_tool_calls=2)).until_done()
    assert [entry["error_type"] for entry in desk.state.tool_results] == [None, "unknown_tool", "limit"]


async def test_decision_5_taking_control_next_to_an_external_call_is_a_conflict(desk: World) -> None:
    tools = ToolSelection.of(desk.tools.tools, external=["w::echo"])
    await desk.runner(calls(HAND_OVER, ECHO), assistant("done"), tools=tools).until_done()
    assert [entry["error_type"] for entry in desk.state.tool_results] == ["conflict", "conflict"]
    assert desk.state.status == "completed"


# The runner's rules that need several of these at once


async def test_a18_a_caller_may_put_a_long_history_in_short_and_no_call_loses_its_result(world: World) -> None:
    """What a client does that compacts: at 100 tokens the history is replaced, also in the middle of a batch."""
    lines: list[Line] = [calls((f"c{turn}", "w__echo", {"text": str(turn)}), text="on it") for turn in range(8)]
    runner = world.runner(*lines, assistant("done"))
    async for message in runner:
        if message.get("tool_calls") and len(runner.state.messages) > 6:
            runner.set_messages([user("in short: some were said")])
    assert [entry["error_type"] for entry in world.state.tool_results] == [None] * 8
    assert len(counting_tools.RUNS) == 8
    assert max(len(asked.messages) for asked in world.model.asked) <= 7
    assert world.state.status == "completed"
    assert_each_request_was_valid(world)


async def test_a20_a_call_that_is_not_ours_is_left_to_its_owner_and_an_event_that_comes_twice_counts_once(
    world: World,
) -> None:
    theirs = ToolSelection.of(world.tools.tools, external=["w::echo"])
    await world.runner(calls(ADD, ECHO), tools=theirs).until_done()
    assert [entry["call_id"] for entry in world.state.tool_results] == ["a"], "no error result for the owner's call"
    runner = world.runner(assistant("done"), tools=theirs)
    for text in ("first", "first", "another"):
        runner.answer([ToolResult("e", "w::echo", text)])
    await runner.until_done()
    assert counting_tools.RUNS == [("add", (1, 2))]
    assert [message["content"] for message in world.state.messages if message["role"] == "tool"] == ["3", "first"]


async def test_a20_what_was_denied_outside_never_runs(world: World) -> None:
    asking = ToolSelection.of(world.tools.tools, external=["w::add"])
    await world.runner(calls(ADD), tools=asking).until_done()
    runner = world.runner(assistant("as you wish"), tools=asking)
    denied = ToolResult("a", "w::add", error="Denied by the user.", error_type=ErrorType.permission)
    runner.answer([denied])
    await runner.until_done()
    assert counting_tools.RUNS == []
    assert (world.state.tool_results[0]["error_type"], world.state.status) == ("permission", "completed")


async def test_u15_a_tool_that_raises_costs_its_siblings_nothing(world: World) -> None:
    broken = ("f", "w__fail", {"reason": "broken"})
    await world.runner(calls(ADD, broken, ECHO), assistant("done")).until_done()
    told = [message["content"] for message in world.state.messages if message["role"] == "tool"]
    assert told == ["3", "Error: RuntimeError: broken", "x"]


async def test_u15_what_a_tool_gives_that_is_no_result_is_an_error_of_its_own() -> None:
    async with world_of() as world:
        world.engine = LocalEngine([Toolset("w", None, tuple(world.tools.tools))], _giving(object()), inline=True)
        await world.engine.setup(SESSION)
        await world.runner(calls(ECHO), assistant("done")).until_done()
        assert world.state.tool_results[0]["error_type"] == "unparseable_result"
        assert world.state.status == "completed"
        await world.engine.teardown(SESSION)


def _giving(given: object) -> dict[str, LocalFunction]:
    def give(**_: object) -> object:
        return given

    return {f"w::{name}": bound(give, Tool(name, "w"), said="give") for name in ("add", "echo", "fail")}
