"""What comes next, decided without a model or an engine."""

import pytest

from conversations.history import OpenCalls
from conversations.messages import Message, assistant, tool_call, tool_message, user
from conversations.policy.limits import Limits
from conversations.state import State
from conversations.steps import AskModel, Finish, Pause, RefuseCalls, RunCalls, next_step
from engines.tool import ErrorType


def calling(*call_ids: str) -> Message:
    return assistant(None, [tool_call(call_id, f"w__{call_id}", "{}") for call_id in call_ids])


def after(*messages: Message, turns: int = 1, finish_reason: str | None = None) -> State:
    state = State(turns=turns, finish_reason=finish_reason)
    state.append(*messages)
    return state


def test_the_first_step_asks_the_model() -> None:
    assert next_step(after(user("hi"), turns=0), Limits()) == AskModel(is_first=True)


def test_calls_are_run_and_then_the_model_is_asked_again() -> None:
    assert next_step(after(user("hi"), calling("a", "b")), Limits()) == RunCalls(OpenCalls(1, ("a", "b")))
    assert next_step(after(calling("a"), tool_message("a", "1")), Limits()) == AskModel()


def test_a_text_ends_the_conversation() -> None:
    assert next_step(after(assistant("bye"), finish_reason="stop"), Limits()) == Finish("completed")


def test_a_finished_conversation_stays_finished() -> None:
    state = after(user("x"))
    state.finish("error", {"type": "x", "message": "y"})
    assert next_step(state, Limits()) == Finish("error", {"type": "x", "message": "y"})


def test_a14_pause_turn_asks_again() -> None:
    assert next_step(after(assistant("hm"), finish_reason="pause_turn"), Limits()) == AskModel()


def test_a12_the_limit_counts_requests_and_answers_what_is_pending() -> None:
    step = next_step(after(calling("a"), turns=2), Limits(max_turns=2))
    assert isinstance(step, RefuseCalls)
    assert (step.batch, step.error_type) == (OpenCalls(0, ("a",)), ErrorType.limit)
    assert next_step(after(calling("a"), tool_message("a", "no"), turns=2), Limits(max_turns=2)) == Finish(
        "error", {"type": "max_turns", "message": "no final answer after 2 turns; raise conversation.max_turns"}
    )


def test_a12_a_text_in_the_last_turn_is_a_success() -> None:
    assert next_step(after(assistant("bye"), turns=2), Limits(max_turns=2)) == Finish("completed")


@pytest.mark.parametrize(("turns", "max_turns", "with_tools"), [(1, 3, True), (2, 3, False), (0, 1, True)])
def test_u20_on_request_the_last_turn_goes_without_tools(turns: int, max_turns: int, with_tools: bool) -> None:
    step = next_step(after(user("x"), turns=turns), Limits(max_turns=max_turns, on_max_turns="answer"))
    assert isinstance(step, AskModel)
    assert step.with_tools is with_tools
    assert next_step(after(user("x"), turns=turns), Limits(max_turns=max_turns)) == AskModel(is_first=turns == 0)


@pytest.mark.parametrize("reason", ["refusal", "content_filter"])
def test_a13_a_refusal_is_terminal_and_its_calls_are_answered_not_run(reason: str) -> None:
    step = next_step(after(calling("a"), finish_reason=reason), Limits())
    assert isinstance(step, RefuseCalls)
    assert step.error_type is ErrorType.permission
    for state in (
        after(calling("a"), tool_message("a", "no"), finish_reason=reason),
        after(assistant("I will not"), finish_reason=reason),
    ):
        finish = next_step(state, Limits())
        assert isinstance(finish, Finish)
        assert (finish.status, (finish.error or {})["type"]) == ("error", reason)


def test_a_reply_cut_off_at_its_token_limit_is_a_typed_error_and_its_calls_are_not_run() -> None:
    step = next_step(after(calling("a"), finish_reason="length"), Limits())
    assert isinstance(step, RefuseCalls)
    assert step.error_type is ErrorType.limit
    cut_call = next_step(after(calling("a"), tool_message("a", "no"), finish_reason="length"), Limits())
    cut_text = next_step(after(assistant("and so"), finish_reason="length"), Limits())
    assert [(step.status, (step.error or {})["type"]) for step in (cut_call, cut_text) if isinstance(step, Finish)] == [
        ("error", "truncated_tool_call"),
        ("error", "truncated_reply"),
    ]


def test_sec_s19_budgets_end_the_conversation() -> None:
    state = after(user("x"))
    state.input_tokens, state.output_tokens, state.tool_calls = 60, 40, 4
    for limits in (Limits(max_total_tokens=100), Limits(max_total_tool_calls=3)):
        step = next_step(state, limits)
        assert isinstance(step, Finish)
        assert (step.error or {})["type"] == "budget"
    assert next_step(state, Limits(max_total_tokens=101, max_total_tool_calls=4)) == AskModel()


def test_sec_s19_time_that_is_used_up_answers_calls_and_then_ends() -> None:
    limits = Limits(max_seconds=1.0)
    refused = next_step(after(calling("a")), limits, is_out_of_time=True)
    assert isinstance(refused, RefuseCalls)
    assert refused.error_type is ErrorType.timeout
    ended = next_step(after(user("x")), limits, is_out_of_time=True)
    assert isinstance(ended, Finish)
    assert (ended.error or {})["type"] == "budget"
    assert next_step(after(assistant("bye")), limits, is_out_of_time=True) == Finish("completed")


def test_s5_calls_of_engines_run_before_external_ones_pause() -> None:
    state = after(calling("a", "b", "c"))
    state.wait_for(["b"])
    assert next_step(state, Limits()) == RunCalls(OpenCalls(0, ("a", "c")))
    state.append(tool_message("a", "1"), tool_message("c", "3"))
    assert next_step(state, Limits()) == Pause(OpenCalls(0, ("b",)))


def test_s16_without_external_tools_nothing_pauses() -> None:
    assert not isinstance(next_step(after(calling("a")), Limits()), Pause)


def test_a_conversation_that_waits_goes_on_once_its_answers_are_there() -> None:
    state = after(calling("b"))
    state.wait_for(["b"])
    state.finish("awaiting_tool_results")
    assert next_step(state, Limits()) == Pause(OpenCalls(0, ("b",)))
    state.append(tool_message("b", "1"))
    assert next_step(state, Limits()) == AskModel()
