"""What an answer's bytes say (rule D58)."""

import json
from typing import Any

import pytest

from engines.errors import ToolFailed
from engines.rest.content import MAX_DEPTH, value_of
from engines.tool import ErrorType


@pytest.mark.parametrize(
    ("body", "content_type", "value"),
    [
        (b'{"a":1}', "application/json", {"a": 1}),
        (b"42", "application/problem+json; charset=utf-8", 42),
        (b' [1, "x"]\n', "text/html", [1, "x"]),
        (b'{"a":1}', "", {"a": 1}),
        (b"42", "text/plain", "42"),
        (b"<p>hi</p>", "application/json", "<p>hi</p>"),
        (b"{not json", "application/json", "{not json"),
        (b"", "application/json", ""),
        ("straße".encode("latin-1"), "text/plain; charset=ISO-8859-1", "straße"),
        (b"caf\xe9", "text/plain", "caf�"),
        (b'{"a":"\xff"}', "application/json", '{"a":"�"}'),
        (b"\x89PNG\xff", "image/png", {"content_type": "image/png", "base64": "iVBOR/8="}),
        (b"%PDF", "application/pdf", "%PDF"),
        (b"\xff", "", "�"),
    ],
)
def test_d58_json_else_text(body: bytes, content_type: str, value: Any) -> None:
    assert value_of(body, content_type) == value


def test_integers_beyond_64_bits_stay_exact() -> None:
    assert value_of(b'{"id":123456789012345678901234567890}', "application/json") == {
        "id": 123456789012345678901234567890
    }


@pytest.mark.parametrize("body", [b"[NaN]", b"[1234567890123456789, Infinity]", b"[" + b"9" * 10_000 + b"]"])
def test_numbers_that_json_has_not_make_it_text(body: bytes) -> None:
    assert value_of(body, "application/json") == body.decode()


def test_sec_s17_an_answer_nested_too_deeply_is_an_error() -> None:
    deepest = b"[" * MAX_DEPTH + b"]" * MAX_DEPTH
    assert json.dumps(value_of(deepest, "application/json")) == deepest.decode()
    for body in (b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), b'{"a":' * 200 + b"1" + b"}" * 200):
        with pytest.raises(ToolFailed, match="nests deeper than 64 levels") as caught:
            value_of(body, "application/json")
        assert caught.value.error_type is ErrorType.unparseable_result


def test_sec_s17_many_brackets_in_texts_are_not_deep() -> None:
    assert value_of(json.dumps("[{" * 1000).encode(), "application/json") == "[{" * 1000
    assert value_of(json.dumps([{"a": []}] * 100).encode(), "application/json") == [{"a": []}] * 100


def test_sec_s17_json_too_deep_to_be_parsed_is_text() -> None:
    body = b"[" * 100_000
    assert value_of(body, "application/json") == body.decode()


@pytest.mark.parametrize("charset", ["zip", "unicode_escape", "idna", "no-such", "utf-7"])
def test_a_charset_that_is_none_of_the_usual_counts_as_utf_8(charset: str) -> None:
    assert value_of("straße".encode(), f"text/plain; charset={charset}") == "straße"
