"""Descriptions of others, made fit to be read by a model."""

from engines.loaders.openapi.texts import description


def test_texts_are_joined_and_each_is_said_once() -> None:
    assert description("Get a pet", "Get a pet", most_chars=99) == "Get a pet"
    assert description("Get a pet", "Get a pet by its id.", most_chars=99) == "Get a pet by its id."
    assert description("Get a pet by its id.", "Get a pet", most_chars=99) == "Get a pet by its id."
    assert description("One.", None, 7, "", "Two.", most_chars=99) == "One.\nTwo."


def test_sec_s9_what_nobody_sees_is_taken_out() -> None:
    hidden = "A\x1b[31mred\x1b[0m\x00 \u202etxt\u200b\U000e0041\ufeff.\r\n\n\n\nEnd\t \tof it"

    assert description(hidden, most_chars=99) == "Ared txt.\n\nEnd of it"


def test_a_long_text_is_cut_at_a_word() -> None:
    assert description("one two three", most_chars=13) == "one two three"
    assert description("one two three", most_chars=12) == "one two…"
    assert description("one two three", most_chars=8) == "one two…"
    assert description("x" * 50, most_chars=10) == "x" * 9 + "…"
    assert len(description("word " * 1_000_000, most_chars=512)) <= 512
