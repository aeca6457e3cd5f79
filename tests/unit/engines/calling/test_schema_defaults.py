"""Schema defaults, put in at every depth."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.calling.schema_defaults import SchemaDefaults, has_defaults


def with_defaults(schema: dict[str, Any], document: Any) -> Any:
    return SchemaDefaults(schema).put_into(document)


UNIT = {"type": "object", "properties": {"unit": {"type": "string", "default": "celsius"}}}
RECURSIVE: dict[str, Any] = {
    "properties": {"node": {"$ref": "#/$defs/node"}},
    "$defs": {
        "node": {
            "type": "object",
            "default": {},
            "properties": {"size": {"default": 1}, "next": {"$ref": "#/$defs/node"}},
        }
    },
}


@pytest.mark.parametrize(
    ("schema", "document", "filled"),
    [
        (UNIT, {}, {"unit": "celsius"}),
        (UNIT, {"unit": "kelvin"}, {"unit": "kelvin"}),
        (UNIT, {"unit": None}, {"unit": None}),
        ({"properties": {"in": UNIT}}, {"in": {}}, {"in": {"unit": "celsius"}}),
        ({"properties": {"in": UNIT}}, {}, {}),
        ({"properties": {"in": {**UNIT, "default": {}}}}, {}, {"in": {"unit": "celsius"}}),
        ({"properties": {"all": {"items": UNIT}}}, {"all": [{}, 1]}, {"all": [{"unit": "celsius"}, 1]}),
        ({"properties": {"two": {"prefixItems": [UNIT]}}}, {"two": [{}, {}]}, {"two": [{"unit": "celsius"}, {}]}),
        ({"properties": {"two": {"items": [UNIT]}}}, {"two": [{}, {}]}, {"two": [{"unit": "celsius"}, {}]}),
        ({"additionalProperties": UNIT}, {"any": {}}, {"any": {"unit": "celsius"}}),
        ({"allOf": [UNIT, {"properties": {"n": {"default": 0}}}]}, {}, {"unit": "celsius", "n": 0}),
        ({"$ref": "#/$defs/a~1b", "$defs": {"a/b": UNIT}}, {}, {"unit": "celsius"}),
        ({"properties": {"x": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"default": 3}}}, {}, {"x": 3}),
        ({"anyOf": [UNIT, {}]}, {}, {}),
        ({"$ref": "#", "properties": {"a": {"default": 1}}}, {}, {"a": 1}),
        ({"$ref": "#/nowhere"}, {}, {}),
    ],
)
def test_defaults_are_filled_in(schema: dict[str, Any], document: Any, filled: Any) -> None:
    assert with_defaults(schema, document) == filled


def test_a_recursive_default_is_put_in_once() -> None:
    assert with_defaults(RECURSIVE, {}) == {"node": {"size": 1, "next": {"size": 1}}}
    assert with_defaults(RECURSIVE, {"node": {"next": {"next": {"size": 7}}}})["node"]["next"]["next"]["size"] == 7


def test_the_given_document_is_not_changed_and_defaults_are_not_shared() -> None:
    schema = {"properties": {"tags": {"default": []}, "in": UNIT}}
    document: dict[str, Any] = {"in": {}}
    first = with_defaults(schema, document)
    first["tags"].append("x")
    assert document == {"in": {}}
    assert with_defaults(schema, document)["tags"] == []


def test_what_needs_no_default_is_the_same_object() -> None:
    document = {"unit": "kelvin"}
    assert with_defaults(UNIT, document) is document


def test_whether_a_schema_has_defaults_at_all() -> None:
    assert has_defaults({"properties": {"a": {"anyOf": [{"default": 1}]}}})
    assert not has_defaults({"properties": {"a": {"enum": ["default"]}}})


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["unit", "in", "node", "next"]), inner),
        max_leaves=10,
    )
)
def test_nothing_given_is_ever_coerced_or_lost(document: Any) -> None:
    schema = {**RECURSIVE, "properties": {**RECURSIVE["properties"], "in": UNIT, "unit": {"default": "celsius"}}}
    assert holds(with_defaults(schema, document), document)


def holds(filled: Any, document: Any) -> bool:
    if isinstance(document, dict):
        return isinstance(filled, dict) and all(key in filled and holds(filled[key], document[key]) for key in document)
    if isinstance(document, list):
        return isinstance(filled, list) and all(map(holds, filled, document)) and len(filled) == len(document)
    return bool(filled == document) and type(filled) is type(document)
