"""Where a conversation is cut, and the job line that goes on from there."""

from typing import Any

import pytest

from conversations.messages import Message, assistant, system, tool_call, tool_message, user
from jobs.job import JobLine
from producer.errors import UsageInvalid
from producer.fork_point import forked_line, model_turns


def made(call_id: str) -> Message:
    return assistant(None, [tool_call(call_id, "w__look", "{}")])


def entry(call_id: str) -> dict[str, Any]:
    return {"call_id": call_id, "name": "w::look", "result": 1, "error": None, "error_type": None, "metadata": {}}


SPOKEN = [
    system("s"), user("q"), made("a"), tool_message("a", "1"), made("b"), tool_message("b", "1"), assistant("end"),
]  # fmt: skip
LINE = JobLine.model_validate(
    {
        "id": "mine",
        "prompt": "q",
        "variables": {"x": 1},
        "tools": ["w::look"],
        "disabled_tools": ["w::other"],
        "tool_choice": "auto",
        "max_turns": 9,
        "metadata": {"lot": 7},
    }
)


def record(messages: list[Message], **changes: Any) -> dict[str, Any]:
    ids = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
    return {
        "run_id": "r", "job_id": "mine", "index": 3, "seed": 11, "messages": messages, "metadata": {"lot": 7},
        "tool_results": [entry(call_id) for call_id in ids],
    } | changes  # fmt: skip


def test_e17_a_fork_keeps_what_came_before_the_next_reply_and_all_that_the_job_said() -> None:
    forked = forked_line(record(SPOKEN), LINE, turn=1, seed=99)
    assert forked == {
        "messages": SPOKEN[:4],
        "variables": {"x": 1},
        "tools": ["w::look"],
        "disabled_tools": ["w::other"],
        "tool_choice": "auto",
        "max_turns": 9,
        "seed": 11,
        "metadata": {"lot": 7, "fork": {"run": "r", "job": "mine", "index": 3, "turn": 1, "messages": 4}},
        "history": {"turns": 1, "tool_results": [entry("a")], "seed": 99},
    }
    JobLine.model_validate(forked)


@pytest.mark.parametrize(("turn", "kept", "calls"), [(0, 2, []), (1, 4, ["a"]), (2, 6, ["a", "b"]), (3, 7, ["a", "b"])])
def test_every_turn_has_its_place(turn: int, kept: int, calls: list[str]) -> None:
    forked = forked_line(record(SPOKEN), LINE, turn=turn, seed=1)
    assert forked["messages"] == SPOKEN[:kept]
    assert [result["call_id"] for result in forked["history"]["tool_results"]] == calls


def test_a_turn_that_the_conversation_did_not_have_is_refused() -> None:
    with pytest.raises(UsageInvalid, match=r"--turn 4: job mine has 3 model turns; use 0 \(from its beginning\) to 2"):
        forked_line(record(SPOKEN), LINE, turn=4, seed=1)


def test_replies_that_the_job_brought_along_are_no_turns() -> None:
    given = [user("q"), assistant("an example"), user("and now?")]
    line = JobLine(messages=tuple(given))
    spoken = [system("s"), *given, made("a"), tool_message("a", "1"), assistant("end")]
    assert model_turns(spoken, line) == [4, 6]
    assert forked_line(record(spoken), line, turn=0, seed=1)["messages"] == spoken[:4]


def test_a_fork_of_a_fork_counts_the_turns_of_both() -> None:
    given = [user("q"), assistant("an example"), user("and now?")]
    spoken = [*given, made("a"), tool_message("a", "1"), made("b"), tool_message("b", "1"), assistant("end")]
    first = forked_line(record(spoken), JobLine(messages=tuple(given)), turn=1, seed=1)
    line = JobLine.model_validate(first)
    assert model_turns(spoken, line) == [3, 5, 7], "the kept turn is one, the example is none"
    second = forked_line(record(spoken, run_id="r-fork"), line, turn=2, seed=2)
    assert (second["history"]["turns"], second["messages"]) == (2, spoken[:7])
    assert second["metadata"]["fork"]["run"] == "r-fork"
    JobLine.model_validate(second)


def test_a_reply_that_was_paused_is_asked_on() -> None:
    spoken = [user("q"), assistant("let me see"), assistant("end")]
    assert forked_line(record(spoken), LINE, turn=1, seed=1)["history"]["finish_reason"] == "pause_turn"
    assert "finish_reason" not in forked_line(record(spoken), LINE, turn=0, seed=1)["history"]
    assert "finish_reason" not in forked_line(record(spoken), LINE, turn=2, seed=1)["history"]


def test_what_never_began_cannot_be_forked() -> None:
    with pytest.raises(UsageInvalid, match="job mine has no conversation to go on with"):
        forked_line(record([], seed=None), LINE, turn=0, seed=1)


def test_calls_of_a_user_that_broke_off_before_it_spoke_are_kept() -> None:
    spoken = [user("q"), made("a"), tool_message("a", "1")]
    aside = {"after": 1, "results_before": 1, "messages": [], "entries": []}
    parent = record(spoken, metadata={"simulated_user": {"turns": 0, "asides": [aside]}})
    assert forked_line(parent, LINE, turn=1, seed=1)["history"]["user"]["asides"] == [aside]


def test_the_simulated_user_is_who_it_was_at_that_turn() -> None:
    spoken = [user("q"), assistant("a1"), user("u1"), assistant("a2"), user("u2"), assistant("a3")]
    asides: list[dict[str, Any]] = [
        {"after": after, "results_before": 0, "messages": [], "entries": []} for after in (2, 4)
    ]
    known = {"persona": "brief", "turns": 2, "model_calls": 5, "input_tokens": 9, "output_tokens": 9, "asides": asides}
    parent = record(spoken, metadata={"simulated_user": known})
    kept = [forked_line(parent, LINE, turn=turn, seed=1)["history"]["user"] for turn in (0, 1, 2)]
    assert kept == [
        {"turns": 0, "persona": "brief"},
        {"turns": 1, "persona": "brief", "asides": asides[:1]},
        {"turns": 2, "persona": "brief", "asides": asides},
    ]
