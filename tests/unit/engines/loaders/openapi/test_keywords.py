"""Keywords of OpenAPI and what draft 2020-12 makes of them."""

from typing import Any

import pytest

from engines.loaders.openapi.keywords import translated_keywords


@pytest.mark.parametrize(
    ("written", "translated"),
    [
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        ({"type": "string", "x-nullable": True}, {"type": ["string", "null"]}),
        ({"type": "string", "nullable": False}, {"type": "string"}),
        ({"type": ["string", "null"], "nullable": True}, {"type": ["string", "null"]}),
        ({"type": "string", "enum": ["a"], "nullable": True}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"minimum": 1, "exclusiveMinimum": True}, {"exclusiveMinimum": 1}),
        ({"minimum": 1, "exclusiveMinimum": False}, {"minimum": 1}),
        ({"maximum": 9, "exclusiveMaximum": True}, {"exclusiveMaximum": 9}),
        ({"exclusiveMinimum": 3}, {"exclusiveMinimum": 3}),
        ({"exclusiveMinimum": True}, {}),
        ({"example": 5}, {"examples": [5]}),
        ({"examples": [1, 2, 3, 4], "example": 0}, {"examples": [0, 1, 2]}),
        ({"examples": {"named": {"value": 1}}}, {}),
        ({"example": "x" * 300}, {}),
        ({"type": "String"}, {"type": "string"}),
        ({"type": "file"}, {"type": "string"}),
        ({"type": "any"}, {}),
        ({"type": ["string", "money"]}, {"type": ["string"]}),
        ({"required": ["a", "a"]}, {"required": ["a"]}),
        ({"required": True}, {}),
        ({"enum": []}, {}),
        ({"enum": "a"}, {}),
        ({"pattern": "^[a-z]+$"}, {"pattern": "^[a-z]+$"}),
        ({"pattern": "^(?<!"}, {}),
        ({"minLength": -1, "maxLength": "5", "minItems": True}, {}),
        ({"multipleOf": 0}, {}),
        ({"const": None, "default": None}, {"const": None, "default": None}),
        ({"deprecated": False, "readOnly": True, "writeOnly": True, "xml": {}, "discriminator": {}, "x-a": 1}, {}),
        ({"description": "a\x00b", "title": " T "}, {"description": "ab", "title": "T"}),
    ],
)
def test_a_keyword_is_translated_or_left_out(written: dict[str, Any], translated: dict[str, Any]) -> None:
    assert translated_keywords(written) == translated


def test_a_long_description_is_capped() -> None:
    assert len(translated_keywords({"description": "long " * 1000})["description"]) <= 512
