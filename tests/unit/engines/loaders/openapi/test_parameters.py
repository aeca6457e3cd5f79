"""Parameters in path, query, header and cookie become arguments."""

from collections.abc import Callable
from typing import Any

import pytest

from engines.errors import ConfigurationInvalid
from engines.loaders.openapi.metadata import RestOperation
from engines.tool import Tool

ToolOf = Callable[..., Tool]


def query(name: str, **written: Any) -> dict[str, Any]:
    return {"in": "query", "name": name, "schema": {"type": "string"}, **written}


def test_d50_parameters_of_the_path_item_are_merged_and_the_operations_win(
    tools_of: Callable[..., dict[str, Tool]],
) -> None:
    path_item = {
        "parameters": [
            query("page", schema={"type": "integer"}),
            query("lang", description="of all"),
            {"in": "header", "name": "lang"},
        ],
        "get": {"operationId": "g", "parameters": [query("lang", description="of this one", required=True)]},
    }

    tool = tools_of({"openapi": "3.0.0", "paths": {"/things": path_item}})["g"]

    assert tool.parameters["properties"] == {
        "page": {"type": "integer"},
        "lang": {"type": "string", "description": "of this one"},
        "header_lang": {"type": "string"},
    }
    assert tool.parameters["required"] == ["lang"]


def test_d50_path_parameters_are_required_and_those_that_the_document_forgot_are_there(tool_of: ToolOf) -> None:
    written = [{"in": "path", "name": "b", "schema": {"type": "integer"}}, {"in": "path", "name": "unused"}]

    tool = tool_of({"parameters": written}, path="/x/{a}/{b}/{a}")

    assert tool.parameters == {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    }
    assert tool.metadata["rest_param_locations"] == {"a": "path", "b": "path"}


def test_d52_a_parameter_by_reference_is_resolved(tool_of: ToolOf) -> None:
    components = {
        "parameters": {"Limit": query("limit", schema={"$ref": "#/components/schemas/Count"})},
        "schemas": {"Count": {"type": "integer", "minimum": 1}},
    }

    tool = tool_of({"parameters": [{"$ref": "#/components/parameters/Limit"}]}, components=components)

    assert tool.parameters["properties"] == {"limit": {"type": "integer", "minimum": 1}}


def test_d54_headers_and_cookies_are_arguments_too(tool_of: ToolOf) -> None:
    written = [{"in": "cookie", "name": "session"}, {"in": "header", "name": "X-Trace", "required": True}]

    tool = tool_of({"parameters": written})

    assert tool.metadata["rest_param_locations"] == {"X-Trace": "header", "session": "cookie"}
    assert tool.parameters["required"] == ["X-Trace"]


@pytest.mark.parametrize(
    "name",
    ["Accept", "Content-Type", "Authorization", "Host", "cookie", "X-Forwarded-For", "Transfer-Encoding", "connection"],
)
def test_d54_sec_s6_headers_that_no_model_says_are_no_arguments(tool_of: ToolOf, name: str) -> None:
    tool = tool_of({"parameters": [{"in": "header", "name": name, "required": True}]})

    assert tool.parameters["properties"] == {}
    assert tool.metadata["rest_parameters"] == {}


def test_sec_s8_the_place_of_an_api_key_is_no_argument(tool_of: ToolOf) -> None:
    written = [{"in": "header", "name": "x-api-key"}, query("key"), query("Key"), {"in": "cookie", "name": "sid"}]
    schemes = {
        "a": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
        "b": {"type": "apiKey", "in": "query", "name": "key"},
        "c": {"type": "apiKey", "in": "cookie", "name": "sid"},
    }

    tool = tool_of({"parameters": written}, components={"securitySchemes": schemes})

    assert tool.parameters["properties"].keys() == {"Key"}


@pytest.mark.parametrize(
    ("written", "style", "explode"),
    [
        ({"in": "query"}, "form", True),
        ({"in": "query", "explode": False}, "form", False),
        ({"in": "query", "style": "deepObject"}, "deepObject", False),
        ({"in": "query", "style": "spaceDelimited"}, "spaceDelimited", False),
        ({"in": "query", "style": "pipeDelimited", "explode": True}, "pipeDelimited", True),
        ({"in": "query", "style": "matrix"}, "form", True),
        ({"in": "header", "style": "form"}, "simple", False),
        ({"in": "header", "explode": True}, "simple", True),
        ({"in": "cookie", "explode": False}, "form", False),
        ({"in": "path", "style": "label", "explode": True}, "label", True),
        ({"in": "path", "style": "matrix"}, "matrix", False),
        ({"in": "path", "explode": "yes"}, "simple", False),
    ],
)
def test_d54_the_style_is_what_the_document_says_where_the_place_has_it(
    tool_of: ToolOf, written: dict[str, Any], style: str, explode: bool
) -> None:
    tool = tool_of({"parameters": [{"name": "p", **written}]}, path="/x/{p}" if written["in"] == "path" else "/x")

    parameter = RestOperation.of(tool).parameters["p"]
    assert (parameter.style, parameter.explode) == (style, explode)


def test_a_parameter_with_content_is_written_as_that_media_type(tool_of: ToolOf) -> None:
    content = {"application/json": {"schema": {"type": "object", "properties": {"a": {"type": "integer"}}}}}

    tool = tool_of({"parameters": [{"in": "query", "name": "filter", "content": content}]})

    assert tool.parameters["properties"]["filter"]["type"] == "object"
    assert RestOperation.of(tool).parameters["filter"].content_type == "application/json"


def test_names_that_providers_refuse_are_changed_and_the_wire_keeps_them(tool_of: ToolOf) -> None:
    tool = tool_of({"parameters": [query("filter[age]", allowReserved=True), query("filter(age)")]})

    read = RestOperation.of(tool).parameters
    assert {argument: each.name for argument, each in read.items()} == {
        "filter_age": "filter[age]",
        "query_filter_age": "filter(age)",
    }
    assert read["filter_age"].allow_reserved


def test_what_a_parameter_says_of_itself_reaches_the_model(tool_of: ToolOf) -> None:
    written = query("q", description="what to look for", example="cats", deprecated=True)
    written["schema"] = {"type": "string", "default": "dogs", "description": "a text"}

    tool = tool_of({"parameters": [written]})

    assert tool.parameters["properties"]["q"] == {
        "type": "string",
        "default": "dogs",
        "description": "what to look for",
        "examples": ["cats"],
        "deprecated": True,
    }


@pytest.mark.parametrize(
    ("parameters", "cause"),
    [
        ([{"in": "query"}], r"POST /things: parameters\[0\]: a parameter is an object with a name and an `in`"),
        ([query("a"), "b"], r"parameters\[1\]"),
        ({"a": 1}, "parameters: must be a list"),
        ([{"name": "a"}], "parameter 'a': no parameters in None"),
        ([{"name": "a", "in": "querry"}], "no parameters in 'querry'; did you mean 'query'"),
        ([{"name": "a", "in": "body"}], "no parameters in 'body'"),
        ([{"$ref": "#/components/parameters/Gone"}], "'#/components/parameters/Gone' names nothing"),
    ],
)
def test_an_unsound_parameter_names_operation_and_cause(tool_of: ToolOf, parameters: Any, cause: str) -> None:
    with pytest.raises(ConfigurationInvalid, match=cause):
        tool_of({"parameters": parameters})
