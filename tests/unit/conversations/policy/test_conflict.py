"""Tools that take control are called alone (rules U12-U14)."""

from conversations.messages import assistant, tool_call
from conversations.policy.conflict import conflicts
from conversations.wire.names import WireNames
from conversations.wire.openai import parse_calls
from engines.tool import Tool

NAMES = WireNames([Tool("get", "w"), Tool("research", "w"), Tool("hand_over", "w")])
TAKERS = frozenset({"w::research", "w::hand_over"})


def told(*names: str) -> dict[str, str]:
    calls = [tool_call(f"{position}", f"w__{name}", "{}") for position, name in enumerate(names)]
    return dict(conflicts(parse_calls(assistant(None, calls), NAMES), TAKERS.__contains__))


def test_u12_alone_it_may_run() -> None:
    assert told("research") == {}


def test_u12_batches_without_one_may_run() -> None:
    assert told("get", "get", "nope") == {}
    assert told() == {}


def test_u12_next_to_another_call_nothing_runs_and_each_is_told_why() -> None:
    said = told("get", "research", "nope")
    assert list(said) == ["0", "1", "2"]
    assert "`w__research` answers the user directly" in said["1"]
    assert "Call the other tools first, then `w__research` alone." in said["1"]
    assert said["0"] == said["2"] == "Not run: the following tool(s) must be called on their own: `w__research`."


def test_u12_two_of_them_are_in_each_others_way() -> None:
    said = told("research", "hand_over", "get")
    assert "`w__research` answers" in said["0"]
    assert "`w__hand_over` answers" in said["1"]
    assert said["2"].endswith("`w__research`, `w__hand_over`.")
