"""Text from models and users cannot steer a terminal (S18)."""

import pytest

from producer.terminal import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, 日本語, emoji 😀\n\tindented", "plain, 日本語, emoji 😀\n\tindented"),
        ("\x1b[2J", r"\x1b[2J"),
        ("a\rb\x00\x7f\x9b", r"a\rb\x00\x7f\x9b"),
        ("\u202egnp.exe\u2066", r"\u202egnp.exe\u2066"),
        ("%s%n {x}", "%s%n {x}"),
        ("\ud800", r"\ud800"),
    ],
)
def test_sec_s18_what_could_steer_a_terminal_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown
