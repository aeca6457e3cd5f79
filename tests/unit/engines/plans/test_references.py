"""Results put into the arguments of later calls."""

from typing import Any

import pytest

from engines.plans.references import UnresolvedReference, references_in, resolved

RESULTS = {"$1": {"order": {"id": "x7", "items": [{"n": 1}, {"n": 2}], "10": "ten"}, "total": 3.5}, "$a": [1, None]}
IDS = ["$1", "$2", "$a"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("$1.order.id", "x7"),
        ("$1.total", 3.5),
        ("$1.order.items[1].n", 2),
        ("$1.order.items.0", {"n": 1}),
        ("$1.order.10", "ten"),
        ("$a[0]", 1),
        ("$a[1]", None),
        ("$a", [1, None]),
        ({"deep": ["$1.total", "$5.00"]}, {"deep": [3.5, "$5.00"]}),
        ("order $1.order.id", "order $1.order.id"),
        ("$1.order.id!", "$1.order.id!"),
        ("", ""),
        (7, 7),
        (None, None),
    ],
)
def test_d86_a_reference_becomes_the_value_it_names_of_its_own_type(given: Any, expected: Any) -> None:
    assert resolved(given, RESULTS, IDS) == expected


@pytest.mark.parametrize(
    ("given", "cause"),
    [
        ("$2", r"'\$2': the call '\$2' has no result"),
        ("$2.order", r"the call '\$2' has no result"),
        ("$elsewhere.id", r"the call '\$elsewhere' has no result"),
        ("$1.order.key", r"the result of '\$1' has no 'key' there"),
        ("$1.total.x", r"the result of '\$1' has no 'x' there"),
        ("$a[2]", r"the result of '\$a' has no '2' there"),
        ("$a.first", r"the result of '\$a' has no 'first' there"),
        ({"in": [{"deep": "$2.x"}]}, r"the call '\$2' has no result"),
    ],
)
def test_d86_what_cannot_be_resolved_is_an_error(given: Any, cause: str) -> None:
    with pytest.raises(UnresolvedReference, match=cause):
        resolved(given, RESULTS, IDS)


def test_references_are_found_with_their_places() -> None:
    found = list(references_in({"a": "$1.x", "b": ["no", {"c": "$2"}], "d": "$3"}, IDS))
    assert [(each.at, each.call_id, each.steps) for each in found] == [
        (("a",), "$1", ("x",)),
        (("b", 1, "c"), "$2", ()),
    ]
