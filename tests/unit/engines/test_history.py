"""Histories and their branches."""

from engines.history import History, HistoryEntry
from engines.tool import ErrorType, ToolCall, ToolResult


def entry(name: str) -> HistoryEntry:
    call = ToolCall(name, "w", {})
    return HistoryEntry(call, ToolResult(None, call.qualified_name, name))


def names(history: History) -> list[str]:
    return [each.call.name for each in history]


def test_a_branch_sees_its_trunk_as_it_was_and_its_own() -> None:
    trunk = History([entry("a")])
    branch = trunk.branch()
    trunk.append(entry("b"))
    branch.append(entry("c"))
    assert names(branch) == ["a", "c"]
    assert names(trunk) == ["a", "b"]
    assert (len(branch), len(trunk)) == (2, 2)


def test_a_rebased_branch_sees_all_of_its_trunk() -> None:
    trunk = History([entry("a")])
    branch = trunk.branch()
    branch.append(entry("c"))
    trunk.append(entry("b"))
    branch.rebase()
    assert names(branch) == ["a", "b"]
    assert branch.own() == []


def test_a_branch_of_a_branch_sees_all_the_way_down() -> None:
    middle = History([entry("a")]).branch()
    middle.append(entry("b"))
    twig = middle.branch()
    twig.append(entry("c"))
    assert names(twig) == ["a", "b", "c"]


def test_a_history_comes_back_from_its_list() -> None:
    history = History([entry("a"), entry("b")])
    assert History.from_list(history.to_list()).to_list() == history.to_list()


def test_only_calls_that_got_to_their_tool_have_a_number() -> None:
    call = ToolCall("a", "w", {})
    assert HistoryEntry(call, ToolResult.failed(call, ErrorType.network, "x")).was_performed
    assert not HistoryEntry(call, ToolResult.failed(call, ErrorType.validation, "x")).was_performed
    assert HistoryEntry(call, ToolResult.failed(call, ErrorType.validation, "x", injected="validation")).was_performed
