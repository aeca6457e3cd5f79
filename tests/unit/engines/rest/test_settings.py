"""What a recipe says of a `rest` engine (rules D47, D56)."""

from typing import Any

import pytest

from engines.checked import checked
from engines.errors import ConfigurationInvalid
from engines.rest.settings import RestSettings

URL = {"type": "rest", "url": "https://api.example/v1"}


def settings(**more: Any) -> RestSettings:
    return checked(RestSettings, {**URL, **more}, at=("engines", "api"))


def refusal(**more: Any) -> str:
    with pytest.raises(ConfigurationInvalid) as caught:
        checked(RestSettings, {"type": "rest", **more}, at=("engines", "api"))
    return str(caught.value)


def session(**more: Any) -> dict[str, Any]:
    return {**URL, "sessions": {"shop": more}}


def test_d47_every_key_is_read() -> None:
    read = settings(
        bearer_token="t",
        headers={"X-Tenant": "a"},
        verify="/ca.pem",
        timeout=5,
        namespaces=["shop"],
        idempotency_key={"header": "X-Idem"},
    )
    assert read.timeout == 5
    assert read.namespaces == ("shop",)
    assert settings(api_key={"name": "k", "value": "v", "location": "query"}).api_key is not None
    assert settings(basic_auth="user:pass").basic_auth is not None


def test_d47_an_unknown_key_is_an_error_that_names_the_nearest() -> None:
    assert refusal(**URL, bearer_tokn="x") == (
        "tools.engines.api.bearer_tokn: unknown key 'bearer_tokn'; did you mean 'bearer_token'?"
    )


def test_decision_11_base_url_means_url() -> None:
    assert checked(RestSettings, {"type": "rest", "base_url": "http://h"}, at=()).url == "http://h"


def test_d56_two_ways_to_say_who_is_asking_are_refused() -> None:
    assert "several ways to say who is asking" in refusal(**URL, bearer_token="t", basic_auth="u:p")
    assert "several ways" in refusal(**URL, bearer_token="t", headers={"authorization": "Basic x"})


@pytest.mark.parametrize("key", [{"bearer_token": "t"}, {"basic_auth": "u:p"}, {"headers": {"X-Key": "k"}}])
def test_sec_s8_credentials_without_a_server_of_their_own_are_refused(key: dict[str, Any]) -> None:
    assert "say its url" in refusal(**key)


def test_sec_s8_sessions_need_a_server_of_their_own() -> None:
    assert "sessions begin on one server; say its url" in refusal(sessions={"shop": {"setup": {"path": "/s"}}})


def test_a_url_with_a_query_is_refused() -> None:
    assert "must have no ?query" in refusal(type="rest", url="http://h/?key=1")


def test_sec_s11_no_secret_is_in_a_repr() -> None:
    read = settings(
        bearer_token="SECRET-1",
        headers={"X-Key": "SECRET-2"},
        sessions={"shop": {"setup": {"path": "/s", "headers": {"X-Admin": "SECRET-3"}, "body": {"pin": "SECRET-4"}}}},
    )
    assert "SECRET" not in repr(read)
    assert {"SECRET-1", "SECRET-2", "Bearer SECRET-1"} <= set(read.masked)


def test_headers_that_are_no_secrets_by_their_names_are_not_masked() -> None:
    assert settings(headers={"X-Tenant": "acme-corporation"}).masked == ()
    with_session = settings(sessions={"shop": {"setup": {"path": "/s", "headers": {"X-Admin-Token": "admin-token"}}}})
    assert with_session.masked == ("admin-token",)


@pytest.mark.parametrize("header", ["Authorization", "Host", "a b", "X\r\nY"])
def test_an_idempotency_key_needs_a_header_of_its_own(header: str) -> None:
    assert "idempotency_key.header" in refusal(**URL, idempotency_key={"header": header})


def test_a_header_is_given_in_one_place() -> None:
    given = {"headers": {"idempotency-key": "x", "X-Session": "y"}}
    assert "the same for every call; leave it out" in refusal(**URL, **given, idempotency_key={})
    sessions = {"shop": {"send": {"header": {"x-session": "{{ session_id }}"}}}}
    assert "sessions.shop gives the header x-session" in refusal(**URL, **given, sessions=sessions)


def test_what_only_the_configuration_fills() -> None:
    read = settings(
        api_key={"name": "key", "value": "v", "location": "query"},
        headers={"X-Tenant": "a"},
        idempotency_key={},
        sessions={"shop": {"send": {"header": {"X-S": "a"}, "query": {"s": "a"}, "cookie": {"c": "a"}}}},
    )
    elsewhere = read.reserved_in("elsewhere")
    assert (set(elsewhere.headers), set(elsewhere.query)) == ({"x-tenant", "idempotency-key"}, {"key"})
    in_shop = read.reserved_in("shop")
    assert in_shop.headers == {"x-tenant", "idempotency-key", "x-s"}
    assert (set(in_shop.query), set(in_shop.cookies)) == ({"key", "s"}, {"c"})


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ({}, "says nothing; give setup, send or teardown"),
        ({"setup": {"path": "sessions"}}, "must start with /"),
        ({"setup": {"path": "/s/{{ token }}"}}, "nothing gives a value to {{ token }}"),
        ({"setup": {"path": "/s", "capture": {"session_id": "/id"}}}, "names no value"),
        ({"setup": {"path": "/s", "capture": {"a-b": "/id"}}}, "names no value"),
        ({"setup": {"path": "/s", "capture": {"id": "id"}}}, "is no JSON pointer"),
        ({"teardown": {"path": "/s/{{ id }}"}}, "nothing gives a value to {{ id }}"),
        ({"send": {"header": {"X": "{{ id }}"}}}, "nothing gives a value to {{ id }}"),
        ({"send": {"header": {"Host": "{{ session_id }}"}}}, "decides how the request is framed"),
        ({"send": {"headers": {}}}, "did you mean 'header'?"),
        ({"setup": {"path": "/s", "method": "TRACE"}}, "Input should be 'GET'"),
        ({"setup": {"path": "/s"}, "resume": "perhaps"}, "Input should be 'replay'"),
    ],
)
def test_a_session_that_cannot_work_is_refused(written: dict[str, Any], told: str) -> None:
    assert told in refusal(**session(**written))


def test_statuses_may_be_one_number() -> None:
    read = settings(sessions={"shop": {"setup": {"path": "/s", "method": "put", "expect": 201}}}).sessions["shop"]
    assert read.setup is not None
    assert (read.setup.method, read.setup.expect) == ("PUT", (201,))
    assert not read.setup.is_success(200)
