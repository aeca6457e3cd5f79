"""The keys of a connection (rules D47, D56, S6, S11)."""

from typing import Any

import pytest
from pydantic import ValidationError

from engines.checked import checked
from engines.errors import ConfigurationInvalid
from engines.kind_settings import EngineSettings
from engines.network.connection import ConnectionSettings

URL = "http://hr.example/v1"


class Settings(EngineSettings, ConnectionSettings):
    """As an engine has them."""


def settings(**keys: Any) -> ConnectionSettings:
    return checked(Settings, {"type": "rest", "url": URL, **keys}, at=("engines", "hr"))


def test_d47_url_and_base_url_mean_the_same() -> None:
    assert ConnectionSettings.model_validate({"base_url": URL}) == ConnectionSettings(url=URL)
    assert ConnectionSettings.model_validate({"base_url": URL, "url": URL}).url == URL
    with pytest.raises(ConfigurationInvalid, match="`url` and `base_url` mean the same and differ"):
        settings(base_url="http://other.example")


@pytest.mark.parametrize(
    ("keys", "headers"),
    [
        ({"bearer_token": "tok"}, [("Authorization", "Bearer tok")]),
        ({"basic_auth": {"username": "u", "password": "p:w"}}, [("Authorization", "Basic dTpwOnc=")]),
        ({"basic_auth": "u:p:w"}, [("Authorization", "Basic dTpwOnc=")]),
        ({"api_key": {"name": "X-Key", "value": "k"}}, [("X-Key", "k")]),
        ({"api_key": {"name": "key", "value": "k", "location": "query"}}, []),
        ({"headers": {"X-Tenant": "7"}, "bearer_token": "t"}, [("X-Tenant", "7"), ("Authorization", "Bearer t")]),
    ],
)
def test_d47_each_way_to_say_who_asks_becomes_its_header(keys: Any, headers: list[tuple[str, str]]) -> None:
    assert list(settings(**keys).credential_headers) == headers


@pytest.mark.parametrize(
    "keys",
    [
        {"bearer_token": "t", "basic_auth": "u:p"},
        {"bearer_token": "t", "headers": {"authorization": "x"}},
        {"basic_auth": "u:p", "headers": {"Authorization": "x"}},
        {"bearer_token": "t", "api_key": {"name": "Authorization", "value": "k"}},
        {"headers": {"X-Key": "1"}, "api_key": {"name": "x-key", "value": "k"}},
        {"headers": {"X-Key": "1", "x-key": "2"}},
    ],
)
def test_d56_two_ways_to_say_who_asks_are_refused(keys: Any) -> None:
    with pytest.raises(ConfigurationInvalid, match=r"give one of them|same name twice"):
        settings(**keys)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"bearer_token": "hunter2\r\nX-Admin: 1"}, "visible ASCII"),
        ({"headers": {"X-A": "hunter2\n"}}, "visible ASCII"),
        ({"headers": {"Host": "hunter2"}}, "Parley sets it itself"),
        ({"headers": {"Content-Length": "1"}}, "Parley sets it itself"),
        ({"headers": {"X A": "1"}}, "no header name"),
        ({"basic_auth": "hunter2"}, "user:password"),
        ({"basic_auth": {"username": "a:b", "password": "hunter2"}}, "colon"),
        ({"url": "http://u:hunter2@x.example"}, "no user or password"),
        ({"url": "ftp://x.example"}, "http:// or https://"),
        ({"url": "http://x.example/#y"}, "fragment"),
        ({"timeout": 0}, "greater than 0"),
        ({"verify": ""}, "path of a CA file"),
        ({"client_key": "k.pem"}, "needs `client_certificate`"),
        ({"allow_addresses": ["10.0.0.1/8"]}, "no network"),
        ({"max_response_bytes": 0}, "greater than or equal to 1"),
        ({"bearer": "hunter2"}, "did you mean 'bearer_token'"),
        ({"api_key": {"name": "k", "value": "hunter2", "location": "cookie"}}, "header"),
    ],
)
def test_sec_s11_what_is_wrong_is_told_without_the_secret(keys: Any, message: str) -> None:
    with pytest.raises(ConfigurationInvalid, match=message) as caught:
        settings(**keys)
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in str(caught.value.__cause__)


def test_sec_s11_secrets_are_not_shown() -> None:
    given = settings(
        basic_auth="u:hunter2",
        headers={"X-A": "hunter2"},
        api_key={"name": "k", "value": "hunter2", "location": "query"},
    )

    assert "hunter2" not in f"{given} {given!r} {given.model_dump_json()}"
    assert set(given.secrets) == {"hunter2"}
    assert given.has_credentials
    assert not settings().has_credentials


def test_unknown_keys_are_refused() -> None:
    with pytest.raises(ValidationError):
        ConnectionSettings.model_validate({"url": URL, "type": "rest"})
