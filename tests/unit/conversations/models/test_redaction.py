"""No secret in what is shown of a server's words."""

import pytest

from conversations.models.redaction import redactor


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("key hunter2-hunter2 is wrong", "key *** is wrong"),
        ("Incorrect API key provided: sk-proj-abc***xyz.", "Incorrect API key provided: ***."),
        ('{"Authorization": "Bearer eyJhbGciOi.J9"}', '{"Authorization": "***"}'),
        ("basic dXNlcjpwYXNz", "***"),
        ("see http://joe:pa55@host/x", "see http://***@host/x"),
        ("api_key=abc123&x=1", "api_key***&x=1"),
        ('{"api-key": "abc123"}', '{"api-key***"}'),
        ("the basic idea of a key", "the basic idea of a key"),
        ("ask me", "ask me"),
    ],
)
def test_sec_s11_known_values_and_whatever_looks_like_a_key_are_masked(text: str, expected: str) -> None:
    assert redactor(["hunter2-hunter2"])(text) == expected


def test_sec_s11_the_longer_secret_is_masked_whole() -> None:
    assert redactor(["abcd", "abcdefgh"])("abcdefgh") == "***"


def test_very_short_and_no_secrets_mask_nothing() -> None:
    assert redactor(["a", ""])("a cat") == redactor([])("a cat") == "a cat"
