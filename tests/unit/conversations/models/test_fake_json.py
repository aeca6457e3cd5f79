"""Documents for any schema: valid, the same for the same seed, and pleasant to read."""

import os
from pathlib import Path
from random import Random
from typing import Any

import jsonschema_rs
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from conversations.models.fake_json import fake_document

TREE = {
    "$defs": {"node": {"type": "object", "properties": {"name": {"type": "string"}, "children": {
        "type": "array", "items": {"$ref": "#/$defs/node"}, "maxItems": 3}}, "required": ["name"]}},
    "$ref": "#/$defs/node",
}  # fmt: skip
LINKED = {
    "type": "object", "required": ["value", "next"], "properties": {
        "value": {"type": "integer"}, "next": {"anyOf": [{"type": "null"}, {"$ref": "#"}]}},
}  # fmt: skip
SCHEMAS: dict[str, Any] = {
    "true": True,
    "anything": {},
    "string": {"type": "string"},
    "short string": {"type": "string", "maxLength": 3},
    "long string": {"type": "string", "minLength": 120, "maxLength": 130},
    "exact string": {"type": "string", "minLength": 7, "maxLength": 7},
    "const": {"const": {"a": [1]}},
    "enum": {"enum": [None, 3, "x", {"a": 1}]},
    "integer": {"type": "integer", "minimum": 10, "maximum": 11},
    "exclusive": {"type": "integer", "exclusiveMinimum": 10, "exclusiveMaximum": 12},
    "fraction": {"type": "number", "exclusiveMinimum": 0.1, "maximum": 0.11},
    "far number": {"type": "number", "minimum": 10**9},
    "negative": {"type": "number", "maximum": -50},
    "multiple": {"type": "integer", "multipleOf": 7, "minimum": 20},
    "fraction multiple": {"type": "number", "multipleOf": 0.25, "minimum": 1, "maximum": 2},
    "nullable": {"type": ["string", "null"]},
    "several types": {"type": ["integer", "boolean", "object"]},
    "nested": {"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {"type": "integer"}},
               "required": ["b"]}}, "required": ["a"], "additionalProperties": False},
    "required beyond properties": {"type": "object", "required": ["x", "y"]},
    "map": {"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 2},
    "few": {"type": "object", "properties": {name: {"type": "string"} for name in "abcdef"}, "maxProperties": 2},
    "many": {"type": "object", "properties": {name: {"type": "string"} for name in "abcdef"}, "minProperties": 6},
    "pattern keys": {"type": "object", "patternProperties": {"^x-[a-z]{3}$": {"type": "integer"}}, "minProperties": 2,
                     "additionalProperties": False},
    "key names": {"type": "object", "propertyNames": {"pattern": "^[A-Z]{2}$"}, "minProperties": 1,
                  "additionalProperties": {"type": "boolean"}},
    "dependent": {"type": "object", "properties": {"card": {"type": "string"}, "code": {"type": "integer"}},
                  "required": ["card"], "dependentRequired": {"card": ["code"]}},
    "array": {"type": "array", "items": {"type": "integer"}, "minItems": 4, "maxItems": 5},
    "empty array": {"type": "array", "maxItems": 0},
    "tuple": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False, "minItems": 2},
    "unique": {"type": "array", "items": {"enum": ["a", "b", "c"]}, "uniqueItems": True, "minItems": 3},
    "contains": {"type": "array", "items": {"type": "integer"}, "contains": {"minimum": 900}, "minItems": 2},
    "one of": {"oneOf": [{"type": "integer", "minimum": 5}, {"type": "integer", "maximum": 10}, {"type": "string"}]},
    "any of objects": {"anyOf": [{"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}},
                                 {"type": "object", "required": ["b"], "properties": {"b": {"const": 1}}}]},
    "all of": {"allOf": [{"type": "object", "required": ["a"], "properties": {"a": {"type": "integer", "minimum": 3}}},
                         {"properties": {"a": {"maximum": 4}, "b": {"type": "string"}}, "required": ["b"]}]},
    "all of bounds": {"allOf": [{"type": "integer", "minimum": 999_990}, {"minimum": 3, "maximum": 1_000_000},
                                {"maximum": 10**9}]},
    "all of references": {"$defs": {"a": {"required": ["x"], "properties": {"x": {"type": "integer"}}},
                                    "b": {"required": ["y"], "properties": {"y": {"type": "boolean"}}}},
                          "type": "object", "allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}]},
    "not": {"type": "integer", "minimum": 1, "maximum": 3, "not": {"const": 2}},
    "if": {"type": "object", "properties": {"kind": {"enum": ["a", "b"]}}, "required": ["kind"],
           "if": {"properties": {"kind": {"const": "a"}}}, "then": {"required": ["x"]}, "else": {"required": ["y"]}},
    "pattern": {"type": "string", "pattern": "^[A-Z]{3}-\\d{4}(-[a-f0-9]+)?$"},
    "pattern and length": {"type": "string", "pattern": "^[a-z]+$", "minLength": 3, "maxLength": 6},
    "tree": TREE,
    "linked list": LINKED,
    "format date": {"type": "string", "format": "date"},
    "format date-time": {"type": "string", "format": "date-time"},
    "format time": {"type": "string", "format": "time"},
    "format duration": {"type": "string", "format": "duration"},
    "format email": {"type": "string", "format": "email"},
    "format uri": {"type": "string", "format": "uri"},
    "format uuid": {"type": "string", "format": "uuid"},
    "format ipv4": {"type": "string", "format": "ipv4"},
    "format ipv6": {"type": "string", "format": "ipv6"},
    "format hostname": {"type": "string", "format": "hostname"},
    "format json-pointer": {"type": "string", "format": "json-pointer"},
    "format regex": {"type": "string", "format": "regex"},
    "format unknown": {"type": "string", "format": "moon-phase"},
}  # fmt: skip


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS.keys())
def test_documents_are_valid(schema: Any) -> None:
    validator = jsonschema_rs.validator_for(schema, validate_formats=True)
    for seed in range(60):
        document = fake_document(schema, Random(seed))
        assert validator.is_valid(document), (
            seed,
            document,
            [error.message for error in validator.iter_errors(document)],
        )


def test_the_same_seed_gives_the_same_document_and_others_differ() -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}, "price": {"type": "number"}}}
    documents = [orjson.dumps(fake_document(schema, Random(seed))) for seed in range(20)]

    assert documents == [orjson.dumps(fake_document(schema, Random(seed))) for seed in range(20)]
    assert len(set(documents)) > 10


@pytest.mark.parametrize(
    "schema",
    [
        False, None, 7, "text", [], {"type": "float"}, {"type": []}, {"type": "object", "properties": []},
        {"type": "object", "properties": {"a": None}}, {"$ref": "#/nowhere"}, {"$ref": "http://127.0.0.1:1/x"},
        {"$ref": 7},
        {"$ref": "#"}, {"allOf": [{"$ref": "#"}]}, {"enum": []}, {"anyOf": []}, {"anyOf": [False]},
        {"pattern": "(", "type": "string"},
        {"type": "integer", "minimum": 5, "maximum": 1}, {"type": "array", "minItems": 3, "items": False},
        {"type": "string", "minLength": 9, "maxLength": 2}, {"required": "x", "type": "object"}, {"not": {}},
        {"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#"}}},
    ],
)  # fmt: skip
def test_schemas_that_are_none_or_contradict_themselves_still_give_a_document(schema: Any) -> None:
    orjson.dumps(fake_document(schema, Random(1)))


SIMPLE = st.recursive(
    st.sampled_from([
        {"type": "string"}, {"type": "integer", "minimum": 0}, {"type": "boolean"}, {"type": "null"},
        {"enum": ["a", 1]},
        {"type": "number", "maximum": 3}, {"type": "string", "maxLength": 4},
    ]),
    lambda inner: st.one_of(
        st.builds(lambda items: {"type": "array", "items": items, "minItems": 1}, inner),
        st.builds(lambda given: {"type": "object", "properties": given, "required": sorted(given)[:2]},
                  st.dictionaries(st.text(min_size=1), inner, max_size=4)),
        st.builds(lambda options: {"anyOf": options}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda first: {"allOf": [first, {}]}, inner),
    ),
    max_leaves=8,
)  # fmt: skip


@given(SIMPLE, st.integers(0, 2**53))
def test_documents_of_composed_schemas_are_valid(schema: Any, seed: int) -> None:
    assert jsonschema_rs.is_valid(schema, fake_document(schema, Random(seed)))


def words_of(question: str, turn: int = 0, **properties: Any) -> Any:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return fake_document(schema, Random(3), hint=question, turn=turn)


def test_what_the_user_named_is_used_in_the_order_of_the_turns() -> None:
    question = "Compare the weather in Tokyo and Oslo, then convert 250 USD into eur."

    assert words_of(question, city={"type": "string"}) == {"city": "Tokyo"}
    assert words_of(question, turn=1, city={"type": "string"}) == {"city": "Oslo"}
    assert words_of(question, amount={"type": "number"}) == {"amount": 250}
    assert words_of(question, currency={"type": "string"}) == {"currency": "USD"}
    assert words_of("in fahrenheit", unit={"enum": ["celsius", "fahrenheit"]}) == {"unit": "fahrenheit"}


def test_a_number_of_the_user_that_the_schema_forbids_is_not_used() -> None:
    assert words_of("for 900 people", guests={"type": "integer", "maximum": 20})["guests"] <= 20


def test_known_values_are_repeated_where_they_fit() -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city", "days"],
    }
    document = fake_document(schema, Random(1), known={"city": "Quito", "days": "three"})

    assert document["city"] == "Quito"
    assert isinstance(document["days"], int)


def test_examples_are_preferred() -> None:
    assert words_of("", code={"type": "string", "examples": ["LHR", "CDG"]})["code"] in {"LHR", "CDG"}


def toolmind() -> Path | None:
    named = os.environ.get("PARLEY_SHARED_DATA")
    folder = Path(named) if named else Path(__file__).resolve().parents[5] / "shared" / "data"
    found = sorted((folder / "toolmind").glob("*.yaml")) if folder.is_dir() else []
    return found[0] if found else None


@pytest.mark.skipif(toolmind() is None, reason="the ToolMind definitions are not here (PARLEY_SHARED_DATA)")
def test_arguments_for_real_tools_are_valid() -> None:
    path = toolmind()
    assert path is not None
    tools = YAML(typ="safe").load(path)
    assert len(tools) > 900
    for name, tool in tools.items():
        schema = {"type": "object", **(tool.get("parameters") or {})}
        validator = jsonschema_rs.validator_for(schema)
        for seed in range(3):
            assert validator.is_valid(fake_document(schema, Random(seed))), name
