"""How places are shared out among namespaces."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.samplers.shares import places, shares


@pytest.mark.parametrize(
    ("weights", "strategy", "expected"),
    [
        (None, "proportional", {"a": 0.5, "b": 0.3, "c": 0.2}),
        (None, "uniform", {"a": 1 / 3, "b": 1 / 3, "c": 1 / 3}),
        ({"a": 0.6}, "uniform", {"a": 0.6, "b": 0.2, "c": 0.2}),
        ({"a": 0.6}, "proportional", {"a": 0.6, "b": 0.24, "c": 0.16}),
        ({"a": 3.0, "b": 1.0, "c": 0.0}, "uniform", {"a": 0.75, "b": 0.25, "c": 0.0}),
        ({"a": 2.0}, "uniform", {"a": 1.0, "b": 0.0, "c": 0.0}),
        ({"elsewhere": 0.5}, "uniform", {"a": 1 / 3, "b": 1 / 3, "c": 1 / 3}),
    ],
)
def test_d83_weights_come_first_and_the_strategy_fills_in(
    weights: dict[str, float] | None, strategy: str, expected: dict[str, float]
) -> None:
    found = shares({"a": 50, "b": 30, "c": 20}, weights, strategy)  # type: ignore[arg-type]  # a parametrised literal
    assert found == pytest.approx(expected)


@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 12), min_size=1),
    st.integers(1, 40),
    st.integers(0, 999),
    st.sampled_from(["proportional", "uniform"]),
)
def test_d83_the_places_sum_to_k_and_no_namespace_gets_more_than_it_has(
    sizes: dict[str, int], k: int, seed: int, strategy: str
) -> None:
    found = places(k, shares(sizes, None, strategy), sizes, random.Random(seed))  # type: ignore[arg-type]  # a literal
    assert sum(found.values()) == min(k, sum(sizes.values()))
    assert all(0 <= found[name] <= size for name, size in sizes.items())


@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.floats(0.01, 1), min_size=1), st.integers(1, 40), st.integers(0, 99)
)
def test_d83_each_quota_is_rounded_down_or_up(weights: dict[str, float], k: int, seed: int) -> None:
    sizes = dict.fromkeys(weights, 1000)
    total = sum(weights.values())
    share_of = {name: weight / total for name, weight in weights.items()}
    found = places(k, share_of, sizes, random.Random(seed))
    assert sum(found.values()) == k
    assert all(abs(found[name] - k * share) < 1 + 1e-6 for name, share in share_of.items())


def test_d83_what_a_small_namespace_cannot_give_goes_to_the_others() -> None:
    found = places(
        10, {"small": 0.8, "large": 0.1, "other": 0.1}, {"small": 2, "large": 9, "other": 9}, random.Random(0)
    )
    assert found == {"small": 2, "large": 4, "other": 4}


def test_d83_the_rest_goes_by_chance_so_that_every_namespace_is_drawn() -> None:
    counted: Counter[str] = Counter()
    sizes = {"large": 95, **{f"s{number}": 1 for number in range(5)}}
    for seed in range(2000):
        counted.update(places(4, shares(sizes, None, "proportional"), sizes, random.Random(seed)))
    assert all(40 < counted[f"s{number}"] < 130 for number in range(5))


def test_d83_any_two_namespaces_may_be_rounded_up_together() -> None:
    sizes = dict.fromkeys("abcd", 9)
    drawn = (places(2, shares(sizes, None, "uniform"), sizes, random.Random(seed)) for seed in range(200))
    pairs = {"".join(name for name, number in found.items() if number) for found in drawn}
    assert pairs == {"ab", "ac", "ad", "bc", "bd", "cd"}
