"""The key `history` of a job line: what a forked job goes on from, and what is refused of it."""

from typing import Any

import pytest
from pydantic import ValidationError

from conversations.messages import assistant, system, tool_call, tool_message, user
from conversations.recipe import Recipe
from conversations.selection import ToolSelection
from engines.tool import Tool
from jobs.beginning import beginning
from jobs.job import JobLine, model_seed_of

SPOKEN = [
    system("You help."),
    user("How warm is it?"),
    assistant(None, [tool_call("c1", "w__look", "{}"), tool_call("c2", "w__look", "{}")]),
    tool_message("c1", "3"),
    tool_message("c2", "3"),
]
RESULTS = [
    {"call_id": "c1", "name": "w::look", "result": 3, "error": None, "error_type": None, "metadata": {}},
    {
        "call_id": "c2", "name": "w::look", "result": 3, "error": None, "error_type": None,
        "metadata": {"duplicate_of": "c1"},
    },
]  # fmt: skip
RECIPE = Recipe.model_validate(
    {"model": {"provider": "offline"}, "conversation": {"system": "You are {{ name }}, another."}}
)
PROMPTING = ToolSelection.of([Tool("look", "w", metadata={"system_prompt": "Look twice.", "user_prompt": "Please."})])


def line(**changes: Any) -> JobLine:
    history = {"turns": 1, "tool_results": RESULTS} | changes.pop("history", {})
    return JobLine.model_validate({"messages": SPOKEN, "history": history} | changes)


def test_e17_a_conversation_goes_on_from_a_turn_as_it_was() -> None:
    user_kept = {"turns": 1, "persona": "brief"}
    state = beginning(RECIPE, line(history={"finish_reason": "pause_turn", "user": user_kept}), PROMPTING)
    assert state.messages == SPOKEN, "no system message and no tool's prompt comes a second time"
    assert state.tool_results == RESULTS
    assert (state.finish_reason, state.user) == ("pause_turn", user_kept)
    assert (state.input_tokens, state.output_tokens) == (0, 0)


def test_s10_the_kept_turns_and_calls_count_against_the_limits() -> None:
    state = beginning(RECIPE, line(), PROMPTING)
    assert (state.turns, state.tool_calls) == (1, 1), "equal calls of a batch count once"


def test_a_beginning_does_not_share_what_it_was_made_of() -> None:
    job = line()
    state = beginning(RECIPE, job, PROMPTING)
    state.append(user("more"))
    state.append_results([RESULTS[0] | {"call_id": "c3"}])
    assert job.messages == tuple(SPOKEN)
    assert beginning(RECIPE, job, PROMPTING).messages == SPOKEN


def test_without_history_a_conversation_begins_with_the_recipes_words() -> None:
    job = JobLine.model_validate({"prompt": "Hello {{ name }}", "variables": {"name": "Ada"}})
    state = beginning(RECIPE, job, PROMPTING)
    assert state.messages == [system("You are Ada, another.\n\nLook twice."), user("Hello Ada\n\nPlease.")]
    assert (state.turns, state.tool_calls, state.tool_results) == (0, 0, [])


def test_the_models_seed_is_the_forks_where_it_has_one() -> None:
    assert model_seed_of(line(history={"seed": 5}), 7) == 5
    assert model_seed_of(line(history={"seed": 0}), 7) == 0
    assert model_seed_of(line(), 7) == 7
    assert model_seed_of(JobLine(prompt="x"), 7) == 7


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"messages": None, "prompt": "x"}, 'needs "messages"'),
        ({"history": {"turns": 2}}, "history.turns is 2, but the messages hold 1 of the assistant"),
        ({"history": {"turns": -1}}, "greater than or equal to 0"),
        ({"history": {"tool_results": [RESULTS[0], RESULTS[0]]}}, "two results of the call 'c1'"),
        ({"history": {"tool_results": [RESULTS[0] | {"call_id": "c9"}]}}, "no message makes the call 'c9'"),
        ({"history": {"tool_results": [RESULTS[0] | {"error_type": "odd"}]}}, "error_type"),
        ({"history": {"tool_results": [RESULTS[0] | {"extra": 1}]}}, "extra"),
        ({"history": {"finish_reason": "stop"}}, "pause_turn"),
        ({"history": {"unknown": 1}}, "unknown"),
    ],
)
def test_a_history_that_is_not_in_the_messages_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        line(**changes)


@pytest.mark.parametrize("calls", ["text", {"id": "c1"}, [None, 3]])
def test_calls_that_are_none_hold_no_call(calls: Any) -> None:
    odd = [user("x"), {"role": "assistant", "tool_calls": calls}]
    with pytest.raises(ValidationError, match="no message makes the call 'c1'"):
        line(messages=odd)
