"""The words of a text."""

import pytest

from engines.words import words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("order_id", ["order", "id"]),
        ("orderIDs", ["order", "id"]),
        ("The IDs of the orders", ["id", "order"]),
        ("getHTTPResponse2xx", ["get", "http", "response", "2", "xx"]),
        ("cities, boxes, addresses, status, analysis", ["city", "box", "address", "status", "analysis"]),
        ("Größe der Straße", ["grösse", "der", "strasse"]),
        ("ﬁle", ["file"]),
        ("天気 forecast天気", ["天", "気", "forecast", "天", "気"]),
        ("", []),
        ("a the of", []),
    ],
)
def test_words_are_lower_case_singular_and_taken_apart(text: str, expected: list[str]) -> None:
    assert words(text) == expected
