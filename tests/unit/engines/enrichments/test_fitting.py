"""Which output fits which input by its type."""

from typing import Any

import pytest

from engines.enrichments.fitting import type_fit

LIST = {"type": "array", "items": {"type": "string"}}
TEXT = {"type": "string"}


def an_object(*names: str) -> dict[str, Any]:
    return {"type": "object", "properties": dict.fromkeys(names, TEXT)}


@pytest.mark.parametrize(
    ("given", "wanted", "fit"),
    [
        (LIST, TEXT, 0),
        (TEXT, LIST, 0),
        (LIST, an_object("a"), 0),
        (LIST, LIST, 1),
        (an_object("a", "b"), an_object("b", "c"), 0.9),
        (an_object("a"), an_object("b"), 0),
        (an_object(), an_object("b"), 0.7),
        (an_object("a"), {"type": "object"}, 0.7),
        (TEXT, TEXT, 1),
        ({"type": "boolean"}, {"type": "boolean"}, 1),
        ({"type": "integer"}, {"type": "number"}, 0.8),
        ({"type": "number"}, {"type": "integer"}, 0.8),
        (TEXT, {"type": "number"}, 0),
        (TEXT, an_object("a"), 0),
        ({}, {}, 1),
        ({}, TEXT, 0),
        ("not a schema", None, 1),
        ({"type": ["string", "null"]}, TEXT, 1),
        ({"type": ["integer", "null"]}, {"type": ["string", "number"]}, 0.8),
        ({"type": "null"}, TEXT, 0),
        ({"type": ["integer", "null"]}, {"type": ["string", "null"]}, 0),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, TEXT, 1),
        ({"enum": ["a", "b"]}, TEXT, 1),
        ({"properties": {"a": TEXT}}, an_object("a"), 0.9),
    ],
)
def test_d78_the_types_say_how_well_an_output_fits(given: Any, wanted: Any, fit: float) -> None:
    assert type_fit(given, wanted) == fit
