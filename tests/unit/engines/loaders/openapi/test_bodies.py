"""Bodies become arguments: fields one by one, or whole."""

from collections.abc import Callable
from typing import Any

import pytest

from engines.errors import ConfigurationInvalid
from engines.loaders.openapi.metadata import RestBody, RestOperation
from engines.tool import Tool

ToolOf = Callable[..., Tool]
FORM = "application/x-www-form-urlencoded"
OBJECT = {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}


def with_body(
    schema: Any, media_type: str = "application/json", *, encoding: Any = None, **written: Any
) -> dict[str, Any]:
    return {"requestBody": {"content": {media_type: {"schema": schema, "encoding": encoding or {}}}, **written}}


def body_of(tool: Tool) -> RestBody:
    body = RestOperation.of(tool).body
    assert body is not None
    return body


def test_d52_a_body_by_reference_gives_its_fields_as_arguments(tool_of: ToolOf) -> None:
    """FastAPI writes every body like this."""
    components = {
        "schemas": {
            "Order": {
                "title": "Order",
                "type": "object",
                "required": ["order_id"],
                "properties": {"order_id": {"type": "string", "title": "Order Id"}, "note": {"type": "string"}},
            }
        },
        "requestBodies": {
            "Order": {
                "required": True,
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Order"}}},
            }
        },
    }

    tool = tool_of({"requestBody": {"$ref": "#/components/requestBodies/Order"}}, components=components)

    assert tool.parameters == {
        "type": "object",
        "properties": {"order_id": {"type": "string", "title": "Order Id"}, "note": {"type": "string"}},
        "required": ["order_id"],
    }
    assert tool.metadata["rest_param_locations"] == {"order_id": "body", "note": "body"}
    assert body_of(tool) == RestBody(required=True)


@pytest.mark.parametrize(
    ("written", "required"), [({}, ["a"]), ({"required": True}, ["a"]), ({"required": False}, None)]
)
def test_the_fields_of_a_body_that_may_be_left_out_are_not_required(
    tool_of: ToolOf, written: dict[str, Any], required: list[str] | None
) -> None:
    tool = tool_of(with_body(OBJECT, **written))

    assert tool.parameters.get("required") == required
    assert body_of(tool).required is (required is not None)


def test_an_all_of_objects_gives_the_fields_of_them_all(tool_of: ToolOf) -> None:
    schema = {"allOf": [OBJECT, {"required": ["c"], "properties": {"c": {"type": "boolean"}}}], "properties": {"d": {}}}

    tool = tool_of(with_body(schema))

    assert tool.parameters["properties"].keys() == {"a", "b", "c", "d"}
    assert set(tool.parameters["required"]) == {"a", "c"}


def test_keywords_beside_the_reference_of_a_body_hold_in_31(tool_of: ToolOf) -> None:
    components = {"schemas": {"Thing": OBJECT}}

    tool = tool_of(with_body({"$ref": "#/components/schemas/Thing", "required": ["b"]}), components=components)

    assert set(tool.parameters["required"]) == {"a", "b"}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {"type": "integer"}},
        {"type": "string"},
        {"type": "object"},
        {"oneOf": [OBJECT, {"type": "object", "properties": {"z": {}}}]},
        {**OBJECT, "anyOf": [{"properties": {"c": {}}}]},
        {**OBJECT, "additionalProperties": True},
        {**OBJECT, "additionalProperties": {"type": "string"}},
        {**OBJECT, "patternProperties": {"^x": {}}},
        {"allOf": [OBJECT, {"properties": {"a": {"type": "integer"}}}]},
        {"allOf": [OBJECT, {"oneOf": [OBJECT]}]},
        True,
        {},
    ],
)
def test_d52_any_other_body_is_one_argument(tool_of: ToolOf, schema: Any) -> None:
    tool = tool_of(with_body(schema, required=True, description="all of it"))

    assert tool.parameters["properties"].keys() == {"body"}
    assert tool.parameters["properties"]["body"]["description"] == "all of it"
    assert tool.parameters["required"] == ["body"]
    assert body_of(tool) == RestBody(required=True, mode="whole", argument="body")
    assert tool.metadata["rest_param_locations"] == {"body": "body"}


def test_an_any_of_that_only_says_what_is_required_leaves_the_fields(tool_of: ToolOf) -> None:
    """Providers refuse combinations at the top of a tool's parameters."""
    tool = tool_of(with_body({**OBJECT, "anyOf": [{"required": ["a"]}, {"required": ["b"]}], "minProperties": 1}))

    assert tool.parameters["properties"].keys() == {"a", "b"}
    assert "anyOf" not in tool.parameters


def test_a_body_that_refers_to_itself_is_loaded(tool_of: ToolOf) -> None:
    components = {"schemas": {"A": {"allOf": [{"$ref": "#/components/schemas/A"}, OBJECT]}}}

    tool = tool_of(with_body({"$ref": "#/components/schemas/A"}), components=components)

    assert tool.parameters["properties"].keys() == {"body"}


def test_an_argument_of_the_same_name_as_a_parameter_is_told_apart(tool_of: ToolOf) -> None:
    tool = tool_of(with_body({"type": "object", "properties": {"id": {"type": "integer"}}}), path="/x/{id}")

    assert tool.metadata["rest_param_locations"] == {"id": "path", "body_id": "body"}
    assert RestOperation.of(tool).parameters["body_id"].name == "id"


def test_a_whole_body_beside_a_parameter_of_that_name(tool_of: ToolOf) -> None:
    tool = tool_of({"parameters": [{"in": "query", "name": "body"}], **with_body({"type": "array"})})

    assert body_of(tool).argument == "body_body"
    assert tool.metadata["rest_param_locations"] == {"body": "query", "body_body": "body"}


def test_sec_s4_a_body_that_has_no_other_fields_closes_the_arguments(tool_of: ToolOf) -> None:
    closed = tool_of(with_body({**OBJECT, "additionalProperties": False}))
    inside = tool_of(with_body({"allOf": [{**OBJECT, "additionalProperties": False}]}))

    assert inside.parameters["additionalProperties"] is False
    assert closed.parameters["additionalProperties"] is False
    assert "additionalProperties" not in tool_of(with_body(OBJECT)).parameters


def test_read_only_fields_are_no_arguments(tool_of: ToolOf) -> None:
    properties = {"id": {"type": "integer", "readOnly": True}, "name": {"type": "string"}}

    tool = tool_of(with_body({"type": "object", "properties": properties, "required": ["id", "name"]}))

    assert tool.parameters["properties"] == {"name": {"type": "string"}}
    assert tool.parameters["required"] == ["name"]


@pytest.mark.parametrize(
    ("media_types", "chosen"),
    [
        (["text/plain", "application/xml", "application/json"], "application/json"),
        (["multipart/form-data", FORM], FORM),
        (["application/octet-stream", "text/csv"], "text/csv"),
        (["application/vnd.api+json", "application/xml"], "application/vnd.api+json"),
        (["application/json; charset=utf-8"], "application/json; charset=utf-8"),
        (["*/*"], "application/json"),
        (["*/*", "application/hal+json"], "application/hal+json"),
        (["image/png", "application/pdf"], "image/png"),
    ],
)
def test_of_several_media_types_the_one_is_sent_that_models_write_best(
    tool_of: ToolOf, media_types: list[str], chosen: str
) -> None:
    content = {media_type: {"schema": OBJECT} for media_type in media_types}

    assert body_of(tool_of({"requestBody": {"content": content}})).content_type == chosen


def test_text_is_one_argument_and_bytes_are_base64(tool_of: ToolOf) -> None:
    text = tool_of(with_body({"type": "object"}, "application/xml"))
    image = tool_of(with_body({"type": "string", "format": "binary"}, "image/png"))

    assert text.parameters["properties"]["body"]["type"] == "string"
    assert not body_of(text).base64
    assert image.parameters["properties"]["body"] == {
        "type": "string",
        "contentEncoding": "base64",
        "description": "image/png, as base64",
    }
    assert body_of(image).base64


def test_a_multipart_takes_files_as_base64_and_objects_as_json(tool_of: ToolOf) -> None:
    components = {"schemas": {"File": {"type": "string", "format": "binary", "description": "a picture"}}}
    properties = {
        "file": {"$ref": "#/components/schemas/File"},
        "files": {"type": "array", "items": {"$ref": "#/components/schemas/File"}},
        "typed": {"type": "string", "contentMediaType": "image/png"},
        "meta": {"type": "object", "properties": {"a": {"type": "integer"}}},
        "note": {"type": "string"},
    }

    tool = tool_of(
        with_body(
            {"type": "object", "properties": properties},
            "multipart/form-data",
            encoding={"file": {"contentType": "image/png"}, "note": {"contentType": "text/plain, text/csv"}},
        ),
        components=components,
    )

    read = RestOperation.of(tool).parameters
    assert {name for name, each in read.items() if each.base64} == {"file", "files", "typed"}
    assert read["file"].content_type == "image/png"
    assert read["meta"].content_type == "application/json"
    assert read["note"].content_type is None
    assert tool.parameters["properties"]["file"] == {
        "type": "string",
        "contentEncoding": "base64",
        "description": "a picture\nbase64",
    }
    assert tool.parameters["properties"]["files"]["items"]["contentEncoding"] == "base64"


def test_a_form_has_the_styles_of_its_encoding(tool_of: ToolOf) -> None:
    properties = {
        "tags": {"type": "array", "items": {"type": "string"}},
        "place": {"type": "object", "properties": {"x": {"type": "integer"}}},
        "other": {"type": "object", "properties": {"x": {"type": "integer"}}},
    }
    encoding = {
        "tags": {"style": "pipeDelimited", "explode": False, "allowReserved": True},
        "place": {"style": "deepObject", "explode": True},
    }

    tool = tool_of(with_body({"type": "object", "properties": properties}, FORM, encoding=encoding))

    read = RestOperation.of(tool).parameters
    assert (read["tags"].style, read["tags"].explode, read["tags"].allow_reserved) == ("pipeDelimited", False, True)
    assert (read["place"].style, read["place"].content_type) == ("deepObject", None)
    assert read["other"].content_type == "application/json"


def test_the_body_of_a_get_is_ignored_in_30_as_it_says(tool_of: ToolOf) -> None:
    assert "rest_request_body" not in tool_of(with_body(OBJECT), method="get", version="3.0.3").metadata
    assert "rest_request_body" in tool_of(with_body(OBJECT), method="get", version="3.1.0").metadata
    assert "rest_request_body" in tool_of(with_body(OBJECT), method="delete", version="3.0.3").metadata


def test_a_body_without_content_is_none(tool_of: ToolOf) -> None:
    assert "rest_request_body" not in tool_of({"requestBody": {"content": {}}}).metadata


@pytest.mark.parametrize("written", [{"content": []}, "text", {"description": "d"}])
def test_an_unsound_body_names_operation_and_cause(tool_of: ToolOf, written: Any) -> None:
    with pytest.raises(ConfigurationInvalid, match="POST /things: requestBody: an object with `content` is needed"):
        tool_of({"requestBody": written})
