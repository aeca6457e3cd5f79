"""Schemas of OpenAPI as JSON Schema 2020-12, self-contained."""

from typing import Any

import pytest

from engines.errors import InvalidTool
from engines.loaders.openapi import schemas
from engines.loaders.openapi.references import Document
from engines.loaders.openapi.schemas import MOST_LEVELS, Translation
from engines.schemas import compiled

SCHEMAS: dict[str, Any] = {
    "Id": {"type": "integer", "description": "an id"},
    "Secret": {"type": "string", "writeOnly": True},
    "Made": {"type": "string", "readOnly": True},
    "Node": {
        "type": "object",
        "properties": {"next": {"$ref": "#/components/schemas/Node"}, "id": {"type": "integer"}},
    },
    "Left": {"type": "object", "properties": {"right": {"$ref": "#/components/schemas/Right"}}},
    "Right": {"type": "object", "properties": {"left": {"$ref": "#/components/schemas/Left"}}},
    "Pet": {
        "type": "object",
        "required": ["id", "name", "password"],
        "properties": {
            "id": {"$ref": "#/components/schemas/Made"},
            "name": {"type": "string"},
            "password": {"$ref": "#/components/schemas/Secret"},
        },
    },
}


def translated(
    written: Any, *, version: str = "3.1.0", direction: schemas.Direction = "request", most_nodes: int = 3000
) -> dict[str, Any]:
    document = Document({"openapi": version, "components": {"schemas": SCHEMAS}})
    translation = Translation(document, direction, most_nodes=most_nodes)
    schema = translation.completed(translation.schema(written))
    compiled(schema)
    return schema


def ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (ref("Id"), {"type": "integer", "description": "an id"}),
        ({"type": "array", "items": ref("Id")}, {"type": "array", "items": SCHEMAS["Id"]}),
        ({"additionalProperties": ref("Id")}, {"additionalProperties": SCHEMAS["Id"]}),
        ({"additionalProperties": False}, {"additionalProperties": False}),
        ({"items": [ref("Id"), {"type": "string"}]}, {"prefixItems": [SCHEMAS["Id"], {"type": "string"}]}),
        ({"patternProperties": {"^a": {}, "(?<!": {}}}, {"patternProperties": {"^a": {}}}),
        ({"not": {"type": "null"}}, {"not": {"type": "null"}}),
        ({"if": {"minimum": 1}, "then": {"maximum": 5}}, {"if": {"minimum": 1}, "then": {"maximum": 5}}),
        ({"anyOf": [{"type": "string"}, ref("Id")]}, {"anyOf": [{"type": "string"}, SCHEMAS["Id"]]}),
        ({"oneOf": [{"type": "string"}, ref("Id")]}, {"anyOf": [{"type": "string"}, SCHEMAS["Id"]]}),
        ({"anyOf": [{"type": "string"}], "oneOf": [{}]}, {"anyOf": [{"type": "string"}], "allOf": [{"anyOf": [{}]}]}),
        ({"properties": {"a": True, "b": 7}}, {"properties": {"a": True, "b": {}}}),
        (True, {}),
        (False, {"not": {}}),
        ("nonsense", {}),
        ({"properties": {"$ref": {"type": "string"}}}, {"properties": {"$ref": {"type": "string"}}}),
        ({"example": {"$ref": "#/$defs/nothing"}}, {"examples": [{"$ref": "#/$defs/nothing"}]}),
    ],
)
def test_d52_a_schema_is_translated_with_its_references_put_in(written: Any, expected: dict[str, Any]) -> None:
    assert translated(written) == expected


def test_d52_what_refers_to_itself_goes_to_definitions() -> None:
    assert translated({"items": ref("Node")}) == {
        "items": {"$ref": "#/$defs/Node"},
        "$defs": {
            "Node": {
                "type": "object",
                "properties": {"next": {"$ref": "#/$defs/Node"}, "id": {"type": "integer"}},
            }
        },
    }


def test_d52_a_circle_of_two_goes_to_definitions_and_still_checks() -> None:
    schema = translated(ref("Left"))

    assert schema["$defs"].keys() == {"Left", "Right"}
    assert compiled(schema).is_valid({"right": {"left": {"right": {}}}})
    assert not compiled(schema).is_valid({"right": {"left": {"right": 5}}})


def test_an_all_of_is_kept() -> None:
    written = {"allOf": [ref("Id"), {"minimum": 3}], "description": "d"}

    assert translated(written) == {"allOf": [SCHEMAS["Id"], {"minimum": 3}], "description": "d"}


def test_read_only_properties_are_left_out_of_requests_and_need_not_be_there() -> None:
    request = translated(ref("Pet"))

    assert request["properties"].keys() == {"name", "password"}
    assert request["required"] == ["name", "password"]


def test_write_only_properties_are_left_out_of_responses() -> None:
    response = translated(ref("Pet"), direction="response")

    assert response["properties"].keys() == {"id", "name"}
    assert response["required"] == ["id", "name"]


def test_a_read_only_property_is_not_required_by_a_neighbour_in_all_of_either() -> None:
    request = translated({"allOf": [ref("Pet"), {"required": ["id", "name"]}]})

    assert request["allOf"][1]["required"] == ["name"]
    assert compiled(request).is_valid({"name": "n", "password": "p"})


@pytest.mark.parametrize("combination", [ref("Id"), {"allOf": [ref("Id")]}, {"oneOf": [ref("Id")]}])
def test_nullable_lets_null_in_beside_a_combination(combination: dict[str, Any]) -> None:
    schema = translated({**combination, "nullable": True, "description": "d"}, version="3.0.3")

    assert schema["description"] == "d"
    assert compiled(schema).is_valid(None)
    assert compiled(schema).is_valid(5)
    assert not compiled(schema).is_valid("text")


def test_keywords_beside_a_reference_hold_in_31_and_only_words_in_30() -> None:
    written = {**ref("Id"), "minimum": 5, "description": "mine"}

    assert translated(written, version="3.0.3") == {"type": "integer", "description": "mine"}
    schema = translated(written)
    assert schema["description"] == "mine"
    assert compiled(schema).is_valid(5)
    assert not compiled(schema).is_valid(4)
    assert not compiled(schema).is_valid("text")


def test_alternatives_that_overlap_still_take_a_value() -> None:
    overlapping = [{"type": "object", "properties": {name: {"type": "string"}}} for name in ("a", "b")]

    assert compiled(translated({"oneOf": overlapping})).is_valid({"a": "text"})


def test_a_schema_that_is_too_large_is_cut_and_takes_anything_there() -> None:
    wide = {"type": "object", "properties": {f"p{number}": {"type": "integer"} for number in range(5000)}}

    schema = translated(wide, most_nodes=100)

    assert schema["properties"]["p0"] == {"type": "integer"}
    assert schema["properties"]["p4999"] == {}


def test_definitions_that_come_too_late_take_anything() -> None:
    written = {"type": "object", "properties": {"a": {"enum": list(range(50))}, "b": ref("Node")}}

    schema = translated(written, most_nodes=20)

    assert schema["properties"]["b"] == {}


def test_a_schema_that_lies_too_deep_takes_anything() -> None:
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(MOST_LEVELS + 5):
        deep = {"items": deep}

    schema = translated(deep)

    for _ in range(MOST_LEVELS + 1):
        schema = schema["items"]
    assert schema == {}


def test_a_reference_to_nothing_is_an_error() -> None:
    with pytest.raises(InvalidTool, match="'#/components/schemas/Missing' names nothing"):
        translated({"items": ref("Missing")})


def test_references_of_one_name_are_told_apart() -> None:
    root = {
        "openapi": "3.1.0",
        "a": {"X": {"type": "object", "properties": {"self": {"$ref": "#/a/X"}}}},
        "b": {"X": {"type": "object", "properties": {"own": {"$ref": "#/b/X"}}}},
    }
    translation = Translation(Document(root), "request")
    schema = translation.completed(
        translation.schema({"properties": {"one": {"$ref": "#/a/X"}, "two": {"$ref": "#/b/X"}}})
    )

    assert schema["properties"] == {"one": {"$ref": "#/$defs/X"}, "two": {"$ref": "#/$defs/X_2"}}
    assert schema["$defs"]["X_2"]["properties"] == {"own": {"$ref": "#/$defs/X_2"}}
