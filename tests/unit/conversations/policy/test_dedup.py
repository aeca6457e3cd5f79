"""Equal calls of one batch (rule U9)."""

import pytest

from conversations.messages import assistant, tool_call
from conversations.policy.dedup import copy_of, duplicates
from conversations.wire.names import WireNames
from conversations.wire.openai import parse_calls
from engines.tool import Tool

NAMES = WireNames([Tool("get", "w"), Tool("get", "v")])


def copies(*calls: tuple[str, str, str]) -> dict[str, str]:
    return dict(duplicates(parse_calls(assistant(None, [tool_call(*call) for call in calls]), NAMES)))


SAME = '{"city":"Oslo","days":2}'
TABLE = {
    "one call": ([("a", "w__get", SAME)], {}),
    "equal": ([("a", "w__get", SAME), ("b", "w__get", SAME)], {"b": "a"}),
    "keys in another order": ([("a", "w__get", SAME), ("b", "w__get", '{"days":2, "city":"Oslo"}')], {"b": "a"}),
    "the tool under its other name": ([("a", "w__get", SAME), ("b", "w::get", SAME)], {"b": "a"}),
    "three": ([("a", "w__get", SAME), ("b", "w__get", SAME), ("c", "w__get", SAME)], {"b": "a", "c": "a"}),
    "two pairs": (
        [("a", "w__get", "{}"), ("b", "v__get", "{}"), ("c", "v__get", "{}"), ("d", "w__get", "{}")],
        {"c": "b", "d": "a"},
    ),
    "other arguments": ([("a", "w__get", SAME), ("b", "w__get", "{}")], {}),
    "another namespace": ([("a", "w__get", SAME), ("b", "v__get", SAME)], {}),
    "2 is not 2.0 in words": ([("a", "w__get", '{"n":"2"}'), ("b", "w__get", '{"n":2}')], {}),
    "unknown tools": ([("a", "nope", "{}"), ("b", "nope", "{}")], {}),
    "broken arguments": ([("a", "w__get", "{"), ("b", "w__get", "{")], {}),
}


@pytest.mark.parametrize(("calls", "expected"), TABLE.values(), ids=TABLE)
def test_u9_equal_means_tool_and_arguments(calls: list[tuple[str, str, str]], expected: dict[str, str]) -> None:
    assert copies(*calls) == expected


def test_u9_a_copy_says_whose_it_is_and_leaves_the_first_alone() -> None:
    entry = {"call_id": "a", "name": "w::get", "result": 4, "error": None, "error_type": None, "metadata": {"x": 1}}
    assert copy_of(entry, "b") == entry | {"call_id": "b", "metadata": {"x": 1, "duplicate_of": "a"}}
    assert entry["metadata"] == {"x": 1}
