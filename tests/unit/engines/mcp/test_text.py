"""Foreign text made fit to be shown."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.mcp.text import printable


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("plain\n\ttext", "plain\n\ttext"),
        ("\x1b[2J\x1b[31mred", "[2J[31mred"),
        ("ring\x07 null\x00 del\x7f c1\x9b", "ring null del c1"),
        ("pay \u202egro.live\u202c", "pay gro.live"),
        ("zero\u200bwidth and \U000e0041\U000e0042 tags", "zerowidth and  tags"),
        ("half \ud800", "half "),
        ("line\u2028separator", "lineseparator"),
        ("Zürich 東京 🙂", "Zürich 東京 🙂"),
    ],
)
def test_sec_s9_control_characters_and_hidden_text_are_taken_out(written: str, shown: str) -> None:
    assert printable(written, 100) == shown


@given(st.text(max_size=300), st.integers(1, 200))
def test_sec_s9_shown_text_is_bounded_and_has_no_control_characters(text: str, most: int) -> None:
    shown = printable(text, most)
    assert len(shown) <= most
    assert all(unicodedata.category(each) not in {"Cc", "Cf", "Cs"} or each in "\n\t" for each in shown)


def test_a_text_that_was_cut_says_so() -> None:
    assert printable("x" * 11, 10) == "x" * 9 + "…"
    assert printable("x" * 10, 10) == "x" * 10
    assert printable("x" * 10_000_000, 10) == "x" * 9 + "…"
