"""Seeds."""

from hypothesis import given
from hypothesis import strategies as st

from engines.chance import derive_seed

parts = st.lists(st.integers() | st.text(), max_size=4)


def test_a_seed_is_the_same_everywhere() -> None:
    assert derive_seed("run", 7, "fault") == 15128745456775


@given(parts, parts)
def test_different_parts_give_different_seeds(one: list[str | int], other: list[str | int]) -> None:
    assert (derive_seed(*one) == derive_seed(*other)) == (one == other)


@given(parts)
def test_a_seed_is_exact_in_json_everywhere(some: list[str | int]) -> None:
    assert 0 <= derive_seed(*some) < 2**53
