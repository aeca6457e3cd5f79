"""Which definitions are put in place, and which stay under `$defs`."""

from typing import Any

from engines.loaders.openapi.inlining import MOST_COPIED_NODES, inlined


def ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


def large(nodes: int) -> dict[str, Any]:
    return {"enum": list(range(nodes))}


def test_a_schema_without_references_stays_as_it_is() -> None:
    assert inlined({"type": "object"}, {}) == {"type": "object"}


def test_small_definitions_are_copied_to_every_place_also_through_one_another() -> None:
    definitions = {"a": {"items": ref("b")}, "b": {"type": "string"}}

    schema = inlined({"properties": {"x": ref("a"), "y": ref("b")}}, definitions)

    assert schema == {"properties": {"x": {"items": {"type": "string"}}, "y": {"type": "string"}}}


def test_a_large_definition_that_is_used_often_is_kept_once() -> None:
    definitions = {"a": large(MOST_COPIED_NODES // 2), "b": large(2 * MOST_COPIED_NODES)}

    once = inlined({"items": ref("b")}, definitions)
    often = inlined({"prefixItems": [ref("a"), ref("a"), ref("a")]}, definitions)

    assert once == {"items": definitions["b"]}
    assert often == {"prefixItems": [ref("a")] * 3, "$defs": {"a": definitions["a"]}}


def test_copies_within_copies_are_counted() -> None:
    """Each level holds the next one twice: in place, twenty levels would be a million nodes."""
    definitions: dict[str, Any] = {"d20": {"type": "string"}}
    for level in range(20):
        definitions[f"d{level}"] = {"prefixItems": [ref(f"d{level + 1}"), ref(f"d{level + 1}")]}

    schema = inlined(ref("d0"), definitions)

    assert len(str(schema)) < 20_000


def test_definitions_that_nobody_needs_any_more_are_left_out() -> None:
    circle = {"properties": {"me": ref("circle"), "small": ref("small")}}

    schema = inlined({"items": ref("circle")}, {"circle": circle, "small": {"type": "null"}})

    assert schema == {
        "items": ref("circle"),
        "$defs": {"circle": {"properties": {"me": ref("circle"), "small": {"type": "null"}}}},
    }


def test_a_root_that_is_recursive_keeps_its_reference() -> None:
    schema = inlined(ref("a"), {"a": {"anyOf": [{"type": "null"}, {"items": ref("b")}]}, "b": {"items": ref("a")}})

    assert schema["$ref"] == "#/$defs/a"
    assert schema["$defs"].keys() == {"a", "b"}


def test_words_beside_a_reference_win_and_other_keywords_hold_too() -> None:
    definitions = {"a": {"type": "string", "description": "theirs"}}

    assert inlined({**ref("a"), "description": "ours"}, definitions) == {"type": "string", "description": "ours"}
    assert inlined({**ref("a"), "minLength": 2, "allOf": [{"maxLength": 5}]}, definitions) == {
        "minLength": 2,
        "allOf": [definitions["a"], {"maxLength": 5}],
    }
