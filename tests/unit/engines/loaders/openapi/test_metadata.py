"""What the loader writes about an operation and the rest engine reads."""

from typing import Any

import pytest

from engines.errors import InvalidTool
from engines.loaders.openapi.metadata import RestBody, RestOperation, RestParameter
from engines.tool import Tool


def parameter(**written: Any) -> RestParameter:
    return RestParameter.model_validate({"name": "x", **written})


OPERATIONS = [
    RestOperation(method="get", path="/"),
    RestOperation(method="GET", path="/a", base_url="https://a.example/v1", base_from="document", accept="text/csv"),
    RestOperation(
        method="DELETE",
        path="/a/{b}",
        parameters={
            "b": parameter(name="b", location="path", style="matrix", explode=True, required=True),
            "c": parameter(name="c[d]", location="query", style="deepObject"),
            "e": parameter(name="e", location="query", explode=False, allow_reserved=True),
            "f": parameter(name="f", location="header", content_type="application/json"),
            "g": parameter(name="g", location="cookie"),
        },
        security=("key: API key in header 'X-Key'",),
    ),
    RestOperation(
        method="PUT",
        path="/a",
        parameters={"body": parameter(name="body", location="body", base64=True, required=True)},
        body=RestBody(content_type="image/png", required=True, mode="whole", argument="body", base64=True),
    ),
]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.method)
def test_d48_what_is_written_reads_back_the_same_also_from_a_stored_recipe(operation: RestOperation) -> None:
    tool = Tool.from_dict(Tool("x", metadata=operation.to_metadata()).to_dict())

    assert RestOperation.of(tool) == operation


def test_d48_the_keys_are_those_of_the_rule() -> None:
    operation = RestOperation(
        method="get",
        path="/a/{b}",
        base_url="https://a.example",
        parameters={
            "b": parameter(name="b", location="path", required=True),
            "filter_age": parameter(name="filter[age]", location="query", style="deepObject"),
            "c": parameter(name="c", location="body"),
        },
        body=RestBody(required=True),
    )

    assert operation.to_metadata() == {
        "rest_base_url": "https://a.example",
        "rest_base_from": "recipe",
        "rest_method": "GET",
        "rest_path": "/a/{b}",
        "rest_param_locations": {"b": "path", "filter_age": "query", "c": "body"},
        "rest_parameters": {
            "b": {"in": "path", "required": True},
            "filter_age": {"in": "query", "name": "filter[age]", "style": "deepObject"},
            "c": {"in": "body"},
        },
        "rest_request_body": {"content_type": "application/json", "mode": "fields", "required": True},
    }


@pytest.mark.parametrize(
    ("location", "style", "explode"),
    [("path", "simple", False), ("query", "form", True), ("header", "simple", False), ("cookie", "form", True)],
)
def test_a_parameter_without_a_style_has_that_of_its_place(location: str, style: str, explode: bool) -> None:
    read = parameter(location=location)

    assert (read.style, read.explode) == (style, explode)
    assert parameter(location="query", style="pipeDelimited").explode is False


def test_d48_a_tool_written_by_hand_needs_only_locations() -> None:
    metadata = {"rest_method": "post", "rest_path": "/a/{b}", "rest_param_locations": {"b": "path", "c": "body"}}

    operation = RestOperation.of(Tool("x", metadata=metadata))

    assert operation.parameters["b"] == parameter(name="b", location="path", required=True)
    assert operation.parameters["c"] == parameter(name="c", location="body")
    assert operation.body == RestBody()
    assert operation.base_url is None


@pytest.mark.parametrize(
    ("metadata", "cause"),
    [
        ({}, r"tool 'default::x': metadata\.rest_method is missing"),
        ({"rest_method": "GET"}, r"metadata\.rest_path is missing"),
        ({"rest_method": "FETCH", "rest_path": "/"}, r"metadata\.rest_method: no method 'FETCH'; did you mean"),
        ({"rest_method": "PSOT", "rest_path": "/"}, "did you mean 'POST'"),
        ({"rest_method": "GET", "rest_path": "/", "rest_param_locations": {"a": "queery"}}, "'query'"),
        ({"rest_method": "GET", "rest_path": "/", "rest_parameters": {"a": "query"}}, "metadata"),
        ({"rest_method": "GET", "rest_path": "/", "rest_parameters": {"a": {"in": "query", "stile": 1}}}, "stile"),
        ({"rest_method": "GET", "rest_path": "/", "rest_request_body": {"mode": "whole"}}, "names its argument"),
        ({"rest_method": "GET", "rest_path": "/", "rest_request_body": {"argument": "a"}}, "names none"),
        ({"rest_method": "GET", "rest_path": "/", "rest_param_locations": [1]}, "metadata"),
    ],
)
def test_metadata_that_cannot_be_read_names_tool_and_cause(metadata: dict[str, Any], cause: str) -> None:
    with pytest.raises(InvalidTool, match=cause):
        RestOperation.of(Tool("x", metadata=metadata))
