"""Results cut to size."""

from hypothesis import given
from hypothesis import strategies as st

from engines.calling.shortening import cut, shortened


def test_s14_what_fits_is_left_alone() -> None:
    assert shortened({"a": 1}, 7) == ({"a": 1}, {})


def test_s14_what_does_not_fit_is_head_and_tail_with_a_note() -> None:
    text, said = shortened("a" * 500 + "z" * 500, 200)
    assert text.startswith("aaa")
    assert text.endswith("zzz")
    assert "more characters left out" in text
    assert said == {"truncated": True, "original_chars": 1000}


@given(st.text(max_size=300), st.integers(1, 300))
def test_s14_the_limit_always_holds(text: str, limit: int) -> None:
    assert len(cut(text, limit)) <= limit
    assert cut(text, limit) == text or len(text) > limit
