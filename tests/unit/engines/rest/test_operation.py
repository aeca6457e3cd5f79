"""The arguments of a call become a request (rules D54 to D57)."""

import json
from typing import Any

import pytest

from engines.errors import InvalidTool, ToolFailed
from engines.loaders.openapi.metadata import RestOperation
from engines.rest.operation import MAX_BODY_BYTES, Operation, RestRequest
from engines.rest.supplied import Reserved, Supplied
from engines.tool import ErrorType, Tool

ACCEPT = {"accept": "application/json, text/plain;q=0.9, */*;q=0.5"}
JSON_HEADERS = {**ACCEPT, "content-type": "application/json"}
METHODS_AND_PATHS = {"rest_method": "GET", "rest_path": "/orders"}

NOT_THE_MODELS = ["Authorization", "Host", "content-length", "Transfer-Encoding", "Cookie", "X-Forwarded-For", "TE"]
NOT_THE_MODELS += ["Proxy-Authorization", "Content-Type", "X-HTTP-Method-Override", "X-Original-URL", "Forwarded"]


def operation(*, base_path: str = "", reserved: Reserved = Reserved(), **metadata: Any) -> Operation:  # noqa: B008
    described = {f"rest_{key}": value for key, value in metadata.items()}
    tool = Tool("a", "w", metadata={**METHODS_AND_PATHS, **described})
    return Operation.of(tool, RestOperation.of(tool), base_path=base_path, reserved=reserved)


def refused(made: Operation, arguments: dict[str, Any]) -> ToolFailed:
    with pytest.raises(ToolFailed) as caught:
        made.request(arguments)
    return caught.value


def test_d57_arguments_go_where_the_metadata_says_and_else_to_the_query() -> None:
    made = operation(
        method="post",
        path="/shops/{shop}/orders",
        param_locations={"shop": "path", "page": "query", "X-Trace": "header", "crumb": "cookie", "item": "body"},
    )
    arguments = {"shop": "a b", "page": 2, "X-Trace": "t", "crumb": "c d", "item": {"n": 1}, "unk": "u&v"}
    assert made.request(arguments) == RestRequest(
        "POST",
        "/shops/a%20b/orders?page=2&unk=u%26v",
        {"accept": ACCEPT["accept"], "x-trace": "t", "cookie": "crumb=c%20d", "content-type": "application/json"},
        b'{"item":{"n":1}}',
    )


def test_d49_the_base_path_stands_before_the_operations() -> None:
    assert operation(base_path="/api/v3/").request({}).target == "/api/v3/orders"
    assert operation(base_path="/").request({}).target == "/orders"


def test_d54_an_argument_may_have_another_name_on_the_wire() -> None:
    parameters = {
        "filter_age": {"in": "query", "name": "filter[age]", "required": True},
        "trace": {"in": "header", "name": "X-Trace"},
        "order": {"in": "path", "name": "orderId"},
    }
    request = operation(path="/orders/{orderId}", parameters=parameters).request(
        {"filter_age": 7, "trace": "t", "order": "o"}
    )
    assert (request.target, request.headers["x-trace"]) == ("/orders/o?filter%5Bage%5D=7", "t")


def test_d54_styles_come_from_the_metadata() -> None:
    parameters = {
        "ids": {"in": "path", "style": "matrix", "explode": True},
        "tags": {"in": "query", "style": "pipeDelimited"},
        "where": {"in": "query", "style": "deepObject", "explode": True},
        "filter": {"in": "query", "content_type": "application/json"},
        "url": {"in": "query", "allow_reserved": True},
    }
    made = operation(path="/orders{ids}", parameters=parameters)
    arguments = {"ids": [1, 2], "tags": ["a", "b"], "where": {"x": 1}, "filter": {"y": [2]}, "url": "http://h/?a"}
    assert made.request(arguments).target == (
        "/orders;ids=1;ids=2?tags=a%7Cb&where%5Bx%5D=1&filter=%7B%22y%22%3A%5B2%5D%7D&url=http://h/?a"
    )


def test_d58_a_missing_path_argument_is_named() -> None:
    made = operation(path="/orders/{orderId}", parameters={"order": {"in": "path", "name": "orderId"}})
    missing: list[dict[str, Any]] = [{}, {"order": ""}, {"order": None}, {"order": []}]
    for arguments in missing:
        failure = refused(made, arguments)
        assert (failure.error_type, failure.message) == (
            ErrorType.validation,
            "Missing required path parameter: 'order'",
        )


def test_a_name_in_the_path_that_nobody_declares_is_an_argument() -> None:
    assert operation(path="/orders/{id}").request({"id": 7}).target == "/orders/7"


def test_a_body_of_fields_is_left_out_when_none_is_given() -> None:
    made = operation(method="POST", param_locations={"x": "body"})
    assert made.request({}) == RestRequest("POST", "/orders", ACCEPT)
    needed = operation(method="POST", param_locations={"x": "body"}, request_body={"required": True})
    assert needed.request({}) == RestRequest("POST", "/orders", JSON_HEADERS, b"{}")


def test_a_body_that_is_one_argument() -> None:
    made = operation(method="PUT", request_body={"mode": "whole", "argument": "items", "required": True})
    assert made.request({"items": [1, {"a": 2}]}) == RestRequest("PUT", "/orders", JSON_HEADERS, b'[1,{"a":2}]')
    assert made.request({"items": None}).content == b"null"
    assert made.request({}).content == b""


def test_the_media_type_to_ask_for_comes_from_the_metadata() -> None:
    assert operation(accept="application/hal+json").request({}).headers == {"accept": "application/hal+json"}


# What only the configuration fills (rules S6, S8)


@pytest.mark.parametrize("name", NOT_THE_MODELS)
def test_sec_s6_headers_that_are_not_the_models_to_say_are_refused(name: str) -> None:
    failure = refused(operation(param_locations={name: "header"}), {name: "evil.example"})
    assert failure.error_type is ErrorType.permission
    assert failure.message == f"the header {name!r} is never taken from arguments; leave it out"


@pytest.mark.parametrize(
    "value",
    ["x\r\nX-Admin: 1", "x\nX-Admin: 1", "x\r", "\x00", "x\x7f", "嘍嘊X-Admin: 1", "é", "\x1b[0m", "x" * 20_000],
)
def test_sec_s6_header_values_that_are_no_visible_ascii_are_refused(value: str) -> None:
    failure = refused(operation(param_locations={"X-Trace": "header"}), {"X-Trace": value})
    assert failure.error_type is ErrorType.validation
    assert value not in failure.message


def test_sec_s6_an_object_in_a_header_or_cookie_makes_no_second_one() -> None:
    made = operation(parameters={"X-A": {"in": "header", "explode": True}, "c": {"in": "cookie", "explode": True}})
    failure = refused(made, {"X-A": {"k\r\nX-Admin": "1"}})
    assert "characters other than visible ASCII" in failure.message
    request = made.request({"c": {"a; admin": "1; b=2"}})
    assert request.headers["cookie"] == "a%3B%20admin=1%3B%20b%3D2"


def test_sec_s6_arguments_that_call_themselves_headers_are_query_parameters() -> None:
    request = operation().request({"host": "evil.example", "Authorization": "Bearer x"})
    assert request.target == "/orders?host=evil.example&Authorization=Bearer%20x"
    assert request.headers == ACCEPT


def test_sec_s8_an_argument_never_stands_in_for_what_the_configuration_gives() -> None:
    reserved = Reserved(frozenset({"x-api-key", "accept", "content-type"}), frozenset({"key"}), frozenset({"sid"}))
    made = operation(
        method="POST",
        path="/orders/{tenant}",
        reserved=reserved,
        parameters={
            "X-API-Key": {"in": "header"},
            "key": {"in": "query"},
            "sid": {"in": "cookie"},
            "exploded": {"in": "query"},
            "tenant": {"in": "path"},
            "account": {"in": "body"},
        },
    )
    arguments = {
        "X-API-Key": "stolen",
        "key": "stolen",
        "sid": "stolen",
        "exploded": {"key": "stolen", "a": 1},
        "tenant": "stolen",
        "account": "stolen",
    }
    supplied = Supplied(
        headers={"x-api-key": "ours"},
        query={"key": "our&key"},
        path={"tenant": "our/tenant"},
        cookies={"sid": "our;sid"},
        body={"account": ["ours"]},
    )
    assert "x-api-key" not in made.request(arguments).headers  # whoever sends it gives it
    request = made.request(arguments, supplied)
    assert request.target == "/orders/our%2Ftenant?a=1&key=our%26key"
    assert request.headers == {"x-api-key": "ours", "cookie": "sid=our%3Bsid"}
    assert json.loads(request.content) == {"account": ["ours"]}


def test_sec_s8_what_a_session_puts_into_the_body_needs_a_body() -> None:
    supplied = Supplied(body={"sid": 1})
    assert operation(method="GET").request({}, supplied).content == b""
    assert operation(method="POST").request({}, supplied).content == b'{"sid":1}'
    whole = operation(method="POST", request_body={"mode": "whole", "argument": "all"})
    assert json.loads(whole.request({"all": {"sid": 2, "a": 3}}, supplied).content) == {"sid": 1, "a": 3}


# What cannot be sent


@pytest.mark.parametrize("location", ["query", "cookie", "path", "header"])
def test_half_a_surrogate_pair_is_refused(location: str) -> None:
    made = operation(path="/orders/{x}" if location == "path" else "/orders", param_locations={"x": location})
    assert refused(made, {"x": "\ud800"}).error_type is ErrorType.validation


def test_urls_and_bodies_have_a_largest_size() -> None:
    assert "the URL is longer than" in refused(operation(), {"q": "x" * 40_000}).message
    made = operation(method="POST", param_locations={"x": "body"})
    assert "the body is larger than 8 MB" in refused(made, {"x": "x" * MAX_BODY_BYTES}).message


@pytest.mark.parametrize(
    ("metadata", "told"),
    [
        ({"path": "/../admin"}, "goes up by dots"),
        ({"parameters": {"a": {"in": "header", "name": "X\r\nY"}}}, "is no header name"),
        ({"parameters": {"a": {"in": "query", "content_type": "a/b\r\nX: y"}}}, "is no media type"),
        ({"request_body": {"content_type": "a/b\r\nX: y"}}, "is no media type"),
        ({"accept": "a/b\r\nX: y"}, "is no media type"),
    ],
)
def test_sec_s6_a_description_that_would_get_out_of_its_place_is_refused(metadata: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidTool, match=told):
        operation(**metadata)


def test_a_fixed_query_in_the_path_stays_first() -> None:
    made = operation(method="POST", path="/?Action=List#AWS", param_locations={"x": "query"})
    assert made.request({"x": 1}).target == "/?Action=List&x=1"
