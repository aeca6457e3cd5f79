"""Secrets that a server says back."""

import pytest

from engines.rest.masking import Masking, is_secret_header


def test_sec_s11_known_secrets_are_masked_in_every_form() -> None:
    mask = Masking(["tok-12345678", 'quote"\\password', "Basic dXNlcjpwYXNzd29yZA=="])
    body = b'{"a":"Bearer tok-12345678","b":"quote\\"\\\\password","c":"dXNlcjpwYXNzd29yZA=="}'
    assert mask(body) == b'{"a":"Bearer ***","b":"***","c":"***"}'


def test_sec_s11_a_secret_inside_a_longer_one_leaves_nothing() -> None:
    assert Masking(["abcdefgh", "abcdefgh-ijkl"])(b"x abcdefgh-ijkl abcdefgh") == b"x *** ***"


def test_short_secrets_are_words_that_answers_hold_anyway() -> None:
    assert Masking(["test", ""])(b"a test") == b"a test"


@pytest.mark.parametrize("name", ["Authorization", "X-Api-Key", "Cookie", "X-Auth-Token", "X-Client-Secret"])
def test_headers_whose_names_say_so_hold_secrets(name: str) -> None:
    assert is_secret_header(name)


@pytest.mark.parametrize("name", ["X-Tenant", "Accept", "User-Agent", "X-Api-Version"])
def test_other_headers_hold_none(name: str) -> None:
    assert not is_secret_header(name)
