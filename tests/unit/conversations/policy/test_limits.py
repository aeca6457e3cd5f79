"""Rule U10: how many calls of a turn are run."""

from conversations.policy.limits import Limits, surplus

FIVE = ["a", "b", "c", "d", "e"]


def test_u10_exactly_n_calls_are_all_run() -> None:
    assert surplus(FIVE, Limits(max_tool_calls=5), 0).call_ids == frozenset()


def test_u10_the_calls_after_the_first_n_are_over() -> None:
    over = surplus(FIVE, Limits(max_tool_calls=3), 0)
    assert over.call_ids == {"d", "e"}
    assert over.message == (
        "Not run: this turn made 5 tool calls, and a turn may make at most 3 tool calls. Only the first 3 were run."
    )


def test_the_budget_of_the_whole_conversation_counts_when_it_is_smaller() -> None:
    over = surplus(FIVE, Limits(max_tool_calls=4, max_total_tool_calls=10), 8)
    assert over.call_ids == {"c", "d", "e"}
    assert "the conversation may make at most 10 tool calls" in over.message


def test_a_budget_that_is_used_up_leaves_no_call() -> None:
    assert surplus(FIVE, Limits(max_total_tool_calls=10), 12).call_ids == set(FIVE)
