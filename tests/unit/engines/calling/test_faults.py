"""Faults on purpose."""

from itertools import groupby
from typing import Any

import pytest
from pydantic import ValidationError

from engines.calling.faults import UNPARSEABLE_RESULT, ErrorCategory, drawn_fault, faulty_result, spoilt, stale_result
from engines.history import History, HistoryEntry
from engines.plain import JSONObject
from engines.tool import ErrorType, ToolCall, ToolResult

CALL = ToolCall("a", "w", {}, "c")


def test_d32_of_two_that_always_fire_each_is_chosen_half_the_time() -> None:
    categories = [ErrorCategory(type="one", probability=1), ErrorCategory(type="two", probability=1)]
    drawn = [drawn_fault(categories, seed=1, call_number=number) for number in range(1000)]
    assert 430 < sum(fault is categories[0] for fault in drawn) < 570
    assert None not in drawn


def test_d32_categories_are_sampled_each_by_itself() -> None:
    categories = [ErrorCategory(type="one", probability=0.5), ErrorCategory(type="two", probability=0.5)]
    drawn = [drawn_fault(categories, seed=1, call_number=number) for number in range(2000)]
    assert 400 < drawn.count(None) < 600  # Both miss: a quarter. One draw for both would leave none.


def test_d35_probability_zero_never_fires_and_one_always() -> None:
    never, always = ErrorCategory(type="x", probability=0), ErrorCategory(type="y", probability=1)
    assert {drawn_fault([never], seed=2, call_number=number) for number in range(500)} == {None}
    assert {drawn_fault([never, always], seed=2, call_number=number) for number in range(500)} == {always}


def test_d36_seed_and_call_number_decide() -> None:
    half = [ErrorCategory(type="x", probability=0.5)]

    def draws(seed: int) -> list[bool]:
        return [drawn_fault(half, seed=seed, call_number=number) is not None for number in range(64)]

    assert draws(1) == draws(1) != draws(2)


@pytest.mark.parametrize(
    ("category", "error_type"),
    [
        ("network_error", ErrorType.network),
        ("schema_violation", ErrorType.schema_violation),
        ("timeout", ErrorType.timeout),
        ("rate_limited", ErrorType.network),
        ("outage", ErrorType.network),
        ("solar_flare", ErrorType.execution),
    ],
)
def test_d33_a_fault_is_its_message(category: str, error_type: ErrorType) -> None:
    result = faulty_result(ErrorCategory(type=category, probability=1, message="no luck"), CALL)
    assert (result.error, result.error_type, result.result) == ("no luck", error_type, None)
    assert result.metadata == {"injected": category}
    assert (result.call_id, result.name) == ("c", "w::a")


def test_d33_an_unparseable_result_is_garbled_text_and_no_error() -> None:
    result = faulty_result(ErrorCategory(type="unparseable_result", probability=1), CALL)
    assert (result.result, result.error, result.metadata) == (
        UNPARSEABLE_RESULT,
        None,
        {"injected": "unparseable_result"},
    )


def test_d34_an_empty_result_is_an_answer_and_no_error() -> None:
    result = faulty_result(ErrorCategory(type="empty_result", probability=1), CALL)
    assert (result.result, result.error, result.metadata) == ([], None, {"injected": "empty_result"})


def test_d32_the_message_has_a_default() -> None:
    assert faulty_result(ErrorCategory(type="x", probability=1), CALL).error == "Tool execution failed"


@pytest.mark.parametrize(
    ("category", "told"),
    [
        ({"type": "rate_limited"}, "Rate limit exceeded"),
        ({"type": "rate_limited", "retry_after_seconds": 30}, "Rate limit exceeded; retry after 30 seconds"),
        ({"type": "rate_limited", "retry_after_seconds": 1.5, "message": "slow"}, "slow; retry after 1.5 seconds"),
        ({"type": "outage"}, "Service unavailable"),
        ({"type": "outage", "message": "Tool execution failed"}, "Tool execution failed"),
    ],
)
def test_d34_a_type_has_its_own_words_unless_the_recipe_has(category: dict[str, Any], told: str) -> None:
    assert faulty_result(ErrorCategory(probability=1, **category), CALL).error == told


# An outage


def downs(seed: int = 1, probability: float = 0.1, calls: int = 4, count: int = 400) -> list[bool]:
    outage = [ErrorCategory(type="outage", probability=probability, calls=calls)]
    return [drawn_fault(outage, seed=seed, call_number=number) is not None for number in range(count)]


def test_d34_an_outage_lasts_for_its_calls_and_then_the_service_is_back() -> None:
    began = downs(calls=1)
    for length in (2, 4, 7):
        expected = [any(began[max(0, number - length + 1) : number + 1]) for number in range(len(began))]
        assert downs(calls=length) == expected
    assert {True, False} <= set(downs())


@pytest.mark.parametrize("calls", [1, 2, 5])
def test_d34_an_outage_that_meets_no_other_is_exactly_so_long(calls: int) -> None:
    lengths = [len(list(run)) for down, run in groupby(downs(probability=0.02, calls=calls, count=2000)) if down]
    assert min(lengths) == calls
    assert lengths.count(calls) > len(lengths) / 2


def test_d36_an_outage_is_the_same_for_whoever_looks_at_a_call() -> None:
    whole = downs()
    outage = [ErrorCategory(type="outage", probability=0.1, calls=4)]
    assert [drawn_fault(outage, seed=1, call_number=number) is not None for number in range(200, 260)] == whole[200:260]
    assert downs(seed=2) != whole


def test_d35_an_outage_of_probability_zero_never_begins_and_of_one_never_ends() -> None:
    assert set(downs(probability=0)) == {False}
    assert set(downs(probability=1)) == {True}


def test_a_service_that_is_down_does_nothing_else() -> None:
    categories = [ErrorCategory(type="x", probability=1), ErrorCategory(type="outage", probability=0.2, calls=2)]
    drawn = [drawn_fault(categories, seed=1, call_number=number) for number in range(200)]
    assert [fault is categories[1] for fault in drawn] == [
        drawn_fault([categories[0].model_copy(update={"probability": 0.0}), categories[1]], seed=1, call_number=number)
        is not None
        for number in range(200)
    ]


# Tools of their own


def test_a_category_may_be_for_some_tools_and_moves_no_other() -> None:
    scoped = ErrorCategory(type="x", probability=0.5, tools=("w::a",))
    general = ErrorCategory(type="y", probability=0.5)

    def draws(categories: list[ErrorCategory], tool: str) -> list[str | None]:
        drawn = [drawn_fault(categories, seed=1, call_number=number, tool=tool) for number in range(300)]
        return [None if fault is None else fault.type for fault in drawn]

    assert set(draws([scoped, general], "w::a")) == {None, "x", "y"}
    elsewhere = draws([scoped, general], "w::b")
    assert set(elsewhere) == {None, "y"}
    assert elsewhere == draws([ErrorCategory(type="x", probability=0), general], "w::b")


def test_an_outage_may_be_for_some_tools() -> None:
    outage = [ErrorCategory(type="outage", probability=1, tools=("w::a",))]
    assert [drawn_fault(outage, seed=1, call_number=0, tool=tool) for tool in ("w::a", "w::b")] == [outage[0], None]


# Answers that are cut short, or old


@pytest.mark.parametrize(
    ("whole", "part"),
    [
        ([1, 2, 3], [1, 2]),
        ([1, 2, 3, 4], [1, 2]),
        ("abcd", "ab"),
        ({"items": [1, 2, 3, 4], "rest": [5, 6], "total": 4}, {"items": [1, 2], "rest": [5], "total": 4}),
        ({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 2}),
        ({"a": 1, "items": [1], "b": 1, "c": 1}, {"a": 1, "items": [1]}),
        ([{"a": 1, "b": 2}], [{"a": 1}]),
        ([{"type": "text", "text": "abcd"}], [{"type": "text", "text": "ab"}]),
        ({"text": "abc", "items": [1, 2]}, {"text": "abc", "items": [1]}),
    ],
)
def test_a_partial_result_is_the_first_half(whole: Any, part: Any) -> None:
    result = spoilt(partial(), ToolResult("c", "w::a", whole, metadata={"mine": 1}))
    assert (result.result, result.metadata) == (part, {"mine": 1, "injected": "partial_result"})
    assert (result.call_id, result.name, result.error) == ("c", "w::a", None)


@pytest.mark.parametrize("whole", [[], [1], "", "a", {}, {"a": 1}, {"a": [1]}, 7, None, True])
def test_what_cannot_be_cut_is_not_marked(whole: Any) -> None:
    result = ToolResult("c", "w::a", whole)
    assert spoilt(partial(), result) is result


def test_a_failure_is_not_cut_and_stays_the_tools_own() -> None:
    result = ToolResult.failed(CALL, ErrorType.execution, "no such city")
    assert spoilt(partial(), result) is result


def partial() -> ErrorCategory:
    return ErrorCategory(type="partial_result", probability=1)


def entry(result: Any, arguments: JSONObject | None = None, **more: Any) -> HistoryEntry:
    return HistoryEntry(ToolCall("a", "w", arguments or {}, "old"), ToolResult("old", "w::a", result, **more))


def stale(*entries: HistoryEntry) -> ToolResult | None:
    return stale_result(CALL, History(entries), filled=lambda arguments: arguments)


def test_a_stale_result_is_what_the_same_call_came_to_first() -> None:
    result = stale(entry(["other"], {"x": 1}), entry(["first"]), entry(["second"]))
    assert result == ToolResult("c", "w::a", ["first"], metadata={"injected": "stale_result"})


def test_a_stale_result_is_a_copy() -> None:
    first = entry(["first"])
    result = stale(first)
    assert result is not None
    result.result.append("more")
    assert first.result.result == ["first"]


def test_without_a_real_earlier_answer_nothing_is_stale() -> None:
    other_tool = HistoryEntry(ToolCall("b", "w", {}, "old"), ToolResult("old", "w::b", "x"))
    failed = entry(None, error="no", error_type=ErrorType.execution)
    assert (
        stale(other_tool, failed, entry("old", metadata={"injected": "partial_result"}), entry("x", {"x": 1})) is None
    )


def test_d36_an_old_call_is_known_again_also_from_a_history_without_schema_defaults() -> None:
    call = ToolCall("a", "w", {"unit": "c"}, "c")
    result = stale_result(call, History([entry("old")]), filled=lambda arguments: {"unit": "c", **arguments})
    assert result is not None
    assert result.result == "old"


@pytest.mark.parametrize(
    "category",
    [
        {"type": "x", "probability": 1.1},
        {"type": "x"},
        {"type": "", "probability": 1},
        {"type": "x", "probability": 1, "calls": 2},
        {"type": "x", "probability": 1, "retry_after_seconds": 2},
        {"type": "outage", "probability": 1, "calls": 0},
        {"type": "outage", "probability": 1, "calls": 101},
        {"type": "rate_limited", "probability": 1, "retry_after_seconds": -1},
        {"type": "x", "probability": 1, "tools": []},
    ],
)
def test_a_category_is_checked(category: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ErrorCategory.model_validate(category)
