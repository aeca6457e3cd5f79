"""Swagger 2.0 in the words of OpenAPI 3."""

from collections.abc import Callable
from typing import Any

import pytest

from engines.errors import ConfigurationInvalid
from engines.loaders.openapi.metadata import RestOperation
from engines.tool import Tool

ToolOf = Callable[..., Tool]
FORM = "application/x-www-form-urlencoded"


@pytest.fixture
def swagger(tool_of: ToolOf) -> ToolOf:
    def loaded(operation: dict[str, Any], **more: Any) -> Tool:
        return tool_of(operation, version="2.0", **more)

    return loaded


@pytest.mark.parametrize(
    ("root", "base"),
    [
        ({"host": "a.example", "basePath": "/v1", "schemes": ["http"]}, "http://a.example/v1"),
        ({"host": "a.example:8443", "schemes": ["http", "https"]}, "https://a.example:8443"),
        ({"host": "a.example", "basePath": "/"}, "https://a.example"),
        ({"host": "a.example", "schemes": ["ws"]}, "https://a.example"),
        ({}, None),
    ],
)
def test_d49_the_base_url_is_scheme_host_and_base_path(swagger: ToolOf, root: dict[str, Any], base: str | None) -> None:
    assert swagger({}, **root).metadata.get("rest_base_url") == base


def test_d49_a_base_path_alone_is_relative(swagger: ToolOf) -> None:
    with pytest.raises(ConfigurationInvalid, match="'/v1' is relative"):
        swagger({}, basePath="/v1")


@pytest.mark.parametrize(
    ("place", "collection", "style", "explode"),
    [
        ("query", None, "form", False),
        ("query", "csv", "form", False),
        ("query", "multi", "form", True),
        ("query", "ssv", "spaceDelimited", False),
        ("query", "tsv", "tabDelimited", False),
        ("query", "pipes", "pipeDelimited", False),
        ("header", "csv", "simple", False),
        ("path", "csv", "simple", False),
    ],
)
def test_a_collection_format_is_a_style(
    swagger: ToolOf, place: str, collection: str | None, style: str, explode: bool
) -> None:
    written: dict[str, Any] = {
        "in": place,
        "name": "p",
        "type": "array",
        "items": {"type": "integer"},
        "required": True,
    }
    if collection is not None:
        written["collectionFormat"] = collection

    tool = swagger({"parameters": [written]}, path="/x/{p}" if place == "path" else "/x")

    assert tool.parameters["properties"]["p"] == {"type": "array", "items": {"type": "integer"}}
    parameter = RestOperation.of(tool).parameters["p"]
    assert (parameter.style, parameter.explode) == (style, explode)


def test_d52_a_body_parameter_by_reference_gives_its_fields(swagger: ToolOf) -> None:
    pet = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "x-nullable": True}}}

    tool = swagger(
        {"parameters": [{"$ref": "#/parameters/Pet"}], "consumes": ["application/vnd.pet+json"]},
        definitions={"Pet": pet},
        parameters={"Pet": {"in": "body", "name": "pet", "required": True, "schema": {"$ref": "#/definitions/Pet"}}},
    )

    assert tool.parameters["properties"] == {"name": {"type": ["string", "null"]}}
    assert tool.parameters["required"] == ["name"]
    assert tool.metadata["rest_request_body"]["content_type"] == "application/vnd.pet+json"


def test_form_fields_are_a_form_and_with_a_file_a_multipart(swagger: ToolOf) -> None:
    fields = [
        {"in": "formData", "name": "note", "type": "string", "required": True, "description": "n"},
        {"in": "formData", "name": "tags", "type": "array", "items": {"type": "string"}, "collectionFormat": "pipes"},
    ]
    file = {"in": "formData", "name": "file", "type": "file"}

    form = swagger({"parameters": fields})
    multipart = swagger({"parameters": [*fields, file], "consumes": [FORM]})

    assert form.metadata["rest_request_body"]["content_type"] == FORM
    assert form.parameters["properties"]["note"] == {"type": "string", "description": "n"}
    assert form.parameters["required"] == ["note"]
    assert RestOperation.of(form).parameters["tags"].style == "pipeDelimited"
    assert multipart.metadata["rest_request_body"]["content_type"] == "multipart/form-data"
    assert RestOperation.of(multipart).parameters["file"].base64


def test_a_form_that_is_consumed_as_multipart_alone_is_one(swagger: ToolOf) -> None:
    field = {"in": "formData", "name": "note", "type": "string"}

    tool = swagger({"parameters": [field]}, consumes=["multipart/form-data"])

    assert tool.metadata["rest_request_body"]["content_type"] == "multipart/form-data"


def test_d53_responses_have_the_media_types_that_are_produced(swagger: ToolOf) -> None:
    responses = {"200": {"$ref": "#/responses/Pets"}}
    shared = {"Pets": {"description": "d", "schema": {"type": "array", "items": {"type": "string"}}}}

    json = swagger({"responses": responses}, responses=shared)
    text = swagger({"responses": responses, "produces": ["text/csv"]}, responses=shared, produces=["application/json"])
    file = swagger({"responses": {"200": {"schema": {"type": "file"}}}})

    assert json.output_parameters == {"type": "array", "items": {"type": "string"}}
    assert (text.output_parameters, text.metadata["rest_accept"]) == (None, "text/csv")
    assert file.output_parameters is None


def test_the_parameters_of_the_path_item_are_merged(tools_of: Callable[..., dict[str, Tool]]) -> None:
    path_item = {
        "parameters": [
            {"in": "path", "name": "id", "type": "integer"},
            {"in": "body", "name": "b", "schema": {"type": "string"}},
        ],
        "put": {"parameters": [{"in": "path", "name": "id", "type": "string"}]},
    }

    (tool,) = tools_of({"swagger": "2.0", "paths": {"/x/{id}": path_item}}).values()

    assert tool.parameters["properties"] == {"id": {"type": "string"}, "body": {"type": "string"}}


def test_security_definitions_are_told(swagger: ToolOf) -> None:
    schemes = {"basic": {"type": "basic"}, "key": {"type": "apiKey", "in": "query", "name": "key"}}

    tool = swagger(
        {"security": [{"basic": []}, {"key": []}], "parameters": [{"in": "query", "name": "key", "type": "string"}]},
        securityDefinitions=schemes,
    )

    assert tool.metadata["rest_security"] == ["basic: http basic", "key: API key in query 'key'"]
    assert tool.parameters["properties"] == {}


def test_unsound_parameters_name_the_operation(swagger: ToolOf) -> None:
    with pytest.raises(ConfigurationInvalid, match="POST /things: parameters: each must be an object with a name"):
        swagger({"parameters": ["a"]})
