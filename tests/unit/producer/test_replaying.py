"""Recorded conversations through the loop again: the same comes out, and what does not is told by its place."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conversations.messages import assistant
from engines.tool import ToolResult
from producer.fork_point import forked_line
from producer.replay_differences import Difference, differences
from producer.replaying import Replaying
from producer.stored_lines import StoredLines
from tests.support import counting_tools
from tests.support.scripted_model import Line, calls, reply
from tests.unit.producer.made_runs import RECIPE, MadeRun

ADD = ("a", "w__add", {"a": 1, "b": 2})
ECHO = ("e", "w__echo", {"text": "x"})


@pytest.fixture(autouse=True)
def _nothing_ran() -> Iterator[None]:
    counting_tools.RUNS.clear()
    yield
    counting_tools.RUNS.clear()


async def replayed(made: MadeRun, record: dict[str, Any]) -> list[Difference]:
    counting_tools.RUNS.clear()
    found = await Replaying.of(made.found).replay(record, StoredLines(made.found).of(record["index"]))
    assert counting_tools.RUNS == [], "a replay runs no tool"
    return differences(record, found)


CONVERSATIONS: dict[str, tuple[Line, ...]] = {
    "a text": (assistant("done"),),
    "calls": (calls(ADD, ECHO), calls(("f", "w__fail", {"reason": "r"})), assistant("done")),
    "equal calls": (calls(ADD, ("b", "w__add", {"b": 2, "a": 1})), assistant("done")),
    "an unknown tool": (calls(("u", "w__nope", {})), assistant("done")),
    "arguments that are invalid": (calls(("i", "w__add", {"a": "x"}), ("j", "w__add", "{")), assistant("done")),
    "too many calls": (calls(*((str(n), "w__echo", {"text": str(n)}) for n in range(5))), assistant("done")),
    "a tool that takes control": (calls(("h", "w__hand_over", {"topic": "tea"})),),
    "a conflict": (calls(("h", "w__hand_over", {"topic": "tea"}), ADD), assistant("done")),
    "call ids that are missing or repeated": (
        calls(ADD, ("", "w__echo", {"text": "y"})),
        calls(ADD),
        assistant("done"),
    ),
    "too many turns": tuple(calls((str(n), "w__echo", {"text": str(n)})) for n in range(5)),
    "a refusal": (reply(assistant("no") | {"refusal": "no"}, "stop"),),
    "a filtered reply": (reply(assistant("n"), "content_filter"),),
    "a reply that was cut off": (reply(assistant("I was about"), "length"),),
    "calls that were cut off": (reply(calls(ADD), "length"),),
    "a reply that was paused": (reply(assistant("let me see"), "pause_turn"), assistant("done")),
}


@pytest.mark.parametrize("lines", CONVERSATIONS.values(), ids=CONVERSATIONS)
async def test_a_recorded_conversation_comes_out_the_same(tmp_path: Path, lines: tuple[Line, ...]) -> None:
    made = MadeRun(tmp_path)
    record = await made.play(*lines)
    assert await replayed(made, record) == []


async def test_the_jobs_own_words_and_choices_come_out_the_same(tmp_path: Path) -> None:
    jobs: list[dict[str, Any]] = [
        {"messages": [{"role": "user", "content": "q"}, calls(ADD), {"role": "user", "content": "again"}]},
        {"prompt": "hi {{ name }}", "variables": {"name": "Bo"}, "tools": ["w::echo"], "tool_choice": "w::echo"},
        {"prompt": "hi", "disabled_tools": ["w::add"], "max_turns": 1, "seed": 3},
    ]
    made = MadeRun(tmp_path, jobs=jobs)
    for index, lines in enumerate([(assistant("done"),), (calls(ECHO), assistant("done")), (calls(ECHO),)]):
        record = await made.play(*lines, index=index)
        assert await replayed(made, record) == []


async def test_s4_answers_from_outside_come_from_the_record(tmp_path: Path) -> None:
    recipe = RECIPE + "  permissions: {confirm: ['w::echo']}\n"
    made = MadeRun(tmp_path, recipe)
    lines = (
        calls(ADD, ECHO, ("e2", "w__echo", {"text": "x"})),
        calls(("e3", "w__echo", {"text": "z"})),
        assistant("done"),
    )
    answers = {"e": ToolResult("e", "w::echo", "yes"), "e3": ToolResult("e3", "w::echo", error="too late")}
    record = await made.play(*lines, answers=answers)
    assert [entry["call_id"] for entry in record["tool_results"]] == ["a", "e", "e2", "e3"]
    assert await replayed(made, record) == []


async def test_a_simulated_user_says_the_same_again(tmp_path: Path) -> None:
    recipe = RECIPE.replace("max_tool_calls: 3", "max_tool_calls: 3, user: {persona: brief, max_user_turns: 3}")
    made = MadeRun(tmp_path, recipe)
    said = (assistant("and Oslo?"), assistant("###STOP###"))
    record = await made.play(calls(ADD), assistant("3"), assistant("4"), user_says=said)
    assert [message["role"] for message in record["messages"][-3:]] == ["assistant", "user", "assistant"]
    assert await replayed(made, record) == []


async def test_tokens_that_ran_out_run_out_again(tmp_path: Path) -> None:
    made = MadeRun(tmp_path, RECIPE + "limits: {max_total_tokens: 20}\n")
    record = await made.play(calls(ADD), calls(ECHO))
    assert record["error"]["type"] == "budget"
    assert await replayed(made, record) == []


def changed(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(record: dict[str, Any]) -> None:
        *steps, last = [int(step) if step.isdecimal() else step for step in path.split(".")]
        place: Any = record
        for step in steps:
            place = place[step]
        place[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "at"),
    [
        (changed("messages.3.content", "4"), "messages[3].content"),
        (changed("messages.0.content", "You are Bo."), "messages[0].content"),
        (changed("tool_results.0.result", 4), "messages[3].content"),
        (changed("tools.0.function.name", "w__sum"), "tools[0].function.name"),
        (changed("tool_results", []), "end"),
        (changed("tool_results.0.name", "w::echo"), "end"),
        (changed("tool_results.0.metadata", {"not_run": True}), "end"),
        (changed("status", "failed"), "end"),
        (lambda record: record["messages"].append({"role": "user", "content": "more"}), "messages[5]"),
        (changed("messages.4.tool_calls", [{"id": "z", "type": "function", "function": {"name": "w__add"}}]), "end"),
    ],
)
async def test_a_difference_is_told_by_its_place(
    tmp_path: Path, change: Callable[[dict[str, Any]], None], at: str
) -> None:
    made = MadeRun(tmp_path)
    record = await made.play(calls(ADD), assistant("done"))
    record["error"] = {"type": "max_turns", "message": "x"}
    change(record)
    found = await replayed(made, record)
    assert at in [difference.at for difference in found]


async def test_a_loop_that_does_something_else_is_noticed(tmp_path: Path) -> None:
    """The limit of the recipe is another one than when the conversation was made."""
    made = MadeRun(tmp_path)
    record = await made.play(calls(*((str(n), "w__echo", {"text": str(n)}) for n in range(4))), assistant("done"))
    assert record["tool_results"][3]["error_type"] == "limit"
    (tmp_path / "other").mkdir()
    other = MadeRun(tmp_path / "other", RECIPE.replace("max_tool_calls: 3", "max_tool_calls: 9"))
    (difference,) = [each for each in await replayed(other, record) if each.at == "end"]
    assert difference.recorded == "completed"
    assert "runs the call '3', which was not run" in difference.replayed


@pytest.mark.parametrize(
    "ending",
    [
        {"status": "cancelled"},
        {"status": "dead", "error": {"type": "attempts_exhausted", "message": "3"}},
        {"status": "failed", "error": {"type": "model_unavailable", "message": "away"}},
        {"status": "failed", "error": {"type": "budget", "message": "more than 3 seconds (limits.max_seconds)"}},
    ],
)
async def test_what_ended_a_conversation_from_outside_does_not_happen_again(
    tmp_path: Path, ending: dict[str, Any]
) -> None:
    made = MadeRun(tmp_path)
    record = await made.play(calls(ADD), calls(ECHO), assistant("done"))
    for length in (4, 5, 6):
        cut = record | {"error": None} | ending | {"messages": record["messages"][:length]}
        cut["tool_results"] = record["tool_results"][: 1 + (length == 6)]
        assert await replayed(made, cut) == [], f"of {length} messages"


async def test_a_rejected_conversation_is_one_that_ended(tmp_path: Path) -> None:
    made = MadeRun(tmp_path)
    error = {"type": "rejected:length", "message": "too short"}
    record = await made.play(calls(ADD), assistant("done"), status="failed", error=error)
    assert await replayed(made, record) == []
    cut = record | {"messages": record["messages"][:-1]}
    assert [difference.at for difference in await replayed(made, cut)] == ["end"]


async def test_a_result_that_the_policy_gives_is_compared(tmp_path: Path) -> None:
    made = MadeRun(tmp_path)
    record = await made.play(calls(("u", "w__nope", {})), assistant("done"))
    record["tool_results"][0]["error_type"] = "limit"
    (difference,) = await replayed(made, record)
    assert difference == Difference("tool_results.u.error_type", "limit", "unknown_tool")


USER = "max_tool_calls: 3, user: {persona: brief, max_user_turns: 3}"


async def test_a_fork_is_replayed_from_where_it_began(tmp_path: Path) -> None:
    recipe = RECIPE.replace("max_tool_calls: 3", USER)
    made = MadeRun(tmp_path, recipe)
    record = await made.play(
        calls(ADD), assistant("3"), assistant("4"), user_says=(assistant("and Oslo?"), assistant("###STOP###"))
    )
    line = forked_line(record, StoredLines(made.found).of(0), turn=2, seed=1)
    assert [message["role"] for message in line["messages"]][-2:] == ["assistant", "user"]
    (tmp_path / "fork").mkdir()
    fork = MadeRun(tmp_path / "fork", recipe, jobs=[line])
    forked = await fork.play(
        calls(ECHO), assistant("5"), assistant("6"), user_says=(assistant("sure?"), assistant("###STOP###"))
    )
    assert forked["metadata"]["simulated_user"]["turns"] == 2
    assert await replayed(fork, forked) == []


async def test_tokens_of_the_simulated_user_run_out_again(tmp_path: Path) -> None:
    recipe = RECIPE.replace("max_tool_calls: 3", USER) + "limits: {max_total_tokens: 40}\n"
    made = MadeRun(tmp_path, recipe)
    record = await made.play(assistant("3"), calls(ADD), user_says=(assistant("and Oslo?"),))
    assert record["error"]["type"] == "budget"
    assert await replayed(made, record) == []


async def test_measured_figures_are_no_difference(tmp_path: Path) -> None:
    made = MadeRun(tmp_path)
    record = await made.play(calls(ADD, ("u", "w__nope", {})), assistant("done"))
    for entry in record["tool_results"]:
        entry["metadata"]["debug"] = {"seconds": 0.25}
    assert await replayed(made, record) == []


async def test_no_task_is_left_behind(tmp_path: Path) -> None:
    made = MadeRun(tmp_path)
    await replayed(made, await made.play(calls(ADD), assistant("done")))
    assert len(asyncio.all_tasks()) == 1
