"""What forces a call, and for how long (rules U5, U6)."""

from typing import Any

import pytest

from conversations.policy.forced import choice_for, is_forced

FORCED = {"type": "function", "function": {"name": "w__get"}}


@pytest.mark.parametrize(
    ("choice", "first", "later"),
    [
        ("auto", "auto", "auto"),
        ("none", "none", "none"),
        ("required", "required", None),
        (FORCED, FORCED, None),
        (None, None, None),
    ],
)
def test_u6_what_forces_a_call_holds_once(choice: Any, first: Any, later: Any) -> None:
    assert choice_for(choice, is_first=True) == first
    assert choice_for(choice, is_first=False) == later


def test_u17_a_call_is_forced_when_it_is_the_one_that_was_demanded() -> None:
    assert is_forced(FORCED, "w__get", is_first=True)
    assert not is_forced(FORCED, "w__get", is_first=False)
    assert not is_forced(FORCED, "w__put", is_first=True)
    assert not is_forced("required", "w__get", is_first=True)
    assert not is_forced(None, "w__get", is_first=True)
