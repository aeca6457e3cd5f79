"""Texts that match patterns."""

import re
from random import Random

import pytest

from conversations.models.fake_patterns import matching_text


@pytest.mark.parametrize(
    "pattern",
    [
        "abc", "^abc$", "^[a-z]{3,5}$", "^[^a-z]+$", r"^\d{4}-\d{2}-\d{2}$", r"^\w+@\w+\.(com|org)$", "^(a|b)?c*$",
        r"^(x)\1$",
        r"^[A-Z]{2}\d{2}[A-Z0-9]{4,30}$", r"^\+?[1-9]\d{1,14}$", "^#([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$",
        r"^\S+\s\S+$", ".", "^.{10}$",
        r"^\D\W$", "^(?P<a>x)(?P=a)$", "(?:ab)+?",
        "[^\\d]", "^a{2,}$",
         "", r"^(?=.*)x$", r"\bword\b",
    ],
)  # fmt: skip
def test_the_text_holds_the_pattern(pattern: str) -> None:
    for seed in range(20):
        text = matching_text(pattern, Random(seed))
        assert text is not None
        assert re.search(pattern, text)


@pytest.mark.parametrize("pattern", ["(", "[z-a]", r"\p{L}+", "^(?!x)x$", "(?<=y)x(?<!x)", "a" + "(" * 300])
def test_a_pattern_beyond_this_writer_is_none(pattern: str) -> None:
    assert matching_text(pattern, Random(1)) is None
