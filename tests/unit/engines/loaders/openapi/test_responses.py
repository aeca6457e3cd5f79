"""What an operation answers."""

from collections.abc import Callable
from typing import Any

import pytest

from engines.tool import Tool

ToolOf = Callable[..., Tool]
PET = {"type": "object", "properties": {"name": {"type": "string"}, "secret": {"type": "string", "writeOnly": True}}}
SEEN = {"type": "object", "properties": {"name": {"type": "string"}}}


def json_of(schema: Any, media_type: str = "application/json") -> dict[str, Any]:
    return {"description": "d", "content": {media_type: {"schema": schema}}}


@pytest.mark.parametrize(
    ("responses", "output"),
    [
        ({"200": json_of(PET)}, SEEN),
        ({"404": json_of({"type": "string"}), "201": json_of(PET)}, SEEN),
        ({"2XX": json_of(PET), "default": json_of({"type": "string"})}, SEEN),
        ({"default": json_of(PET)}, SEEN),
        ({"200": {"$ref": "#/components/responses/Pet"}}, SEEN),
        ({"200": json_of(PET), "202": json_of({"type": "null"})}, {"anyOf": [SEEN, {"type": "null"}]}),
        ({"200": json_of(PET), "201": json_of(PET)}, SEEN),
        ({"200": json_of(PET, "application/hal+json;v=1")}, SEEN),
        ({"200": json_of(PET, "*/*")}, SEEN),
        ({"200": json_of({"type": "string"}, "text/plain")}, None),
        ({"204": {"description": "gone"}}, None),
        ({"200": json_of({})}, None),
        ({"500": json_of(PET)}, None),
        ({}, None),
    ],
)
def test_d53_the_output_schema_is_that_of_the_json_of_2xx(tool_of: ToolOf, responses: Any, output: Any) -> None:
    tool = tool_of({"responses": responses}, components={"responses": {"Pet": json_of(PET)}})

    assert tool.output_parameters == output


def test_d53_an_operation_without_responses_has_no_output_schema(tool_of: ToolOf) -> None:
    assert tool_of({}).output_parameters is None


@pytest.mark.parametrize(
    ("content", "accept"),
    [
        (["text/csv", "application/json"], "application/json"),
        (["text/csv", "text/plain"], "text/csv"),
        (["*/*"], None),
        ([], None),
    ],
)
def test_json_is_asked_for_where_there_is_any(tool_of: ToolOf, content: list[str], accept: str | None) -> None:
    tool = tool_of({"responses": {"200": {"content": {kind: {} for kind in content}}}})

    assert tool.metadata.get("rest_accept") == accept
