"""Faults on purpose."""

import pytest
from pydantic import ValidationError

from engines.faults import UNPARSEABLE_RESULT, ErrorCategory, drawn_fault, faulty_result
from engines.tool import ErrorType, ToolCall

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


@pytest.mark.parametrize("category", [{"type": "x", "probability": 1.1}, {"type": "x"}, {"type": "", "probability": 1}])
def test_a_category_is_checked(category: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ErrorCategory.model_validate(category)
