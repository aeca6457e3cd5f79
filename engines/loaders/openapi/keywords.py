"""The keywords of a JSON Schema that hold no schemas: which of OpenAPI's mean the same in draft 2020-12.

What is not here is left out: OpenAPI's own (`xml`, `discriminator`, `x-…`), and values that the keyword cannot have,
which documents hold often and which would make the whole schema unusable.
"""

from collections.abc import Callable, Mapping
from typing import Any

from engines.errors import InvalidTool
from engines.loaders.openapi.texts import MOST_CHARS_OF_A_SCHEMA, description
from engines.plain import JSONObject, compact
from engines.schemas import compiled

TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
_MOST_EXAMPLES = 3
_MOST_EXAMPLE_CHARS = 200
_MOST_TITLE_CHARS = 120


def translated_keywords(schema: JSONObject) -> JSONObject:
    """Return the schema's keywords without its sub-schemas, in the order in which they stand."""
    translated: JSONObject = {}
    for key, value in schema.items():
        holds = _KEYWORDS.get(key)
        if holds is not None and holds(value):
            translated[key] = value
    _translate_type(schema, translated)
    _translate_texts(schema, translated)
    _translate_bound(schema, translated, "exclusiveMinimum", "minimum")
    _translate_bound(schema, translated, "exclusiveMaximum", "maximum")
    if "required" in translated:
        translated["required"] = list(dict.fromkeys(translated["required"]))
    return translated


def is_nullable(schema: JSONObject) -> bool:
    """Whether OpenAPI 3.0's `nullable`, or the extension that Swagger has for it, says so."""
    return schema.get("nullable") is True or schema.get("x-nullable") is True


def is_pattern(value: Any) -> bool:
    """Whether the validator can use a regular expression: documents hold those of many languages."""
    if not isinstance(value, str):
        return False
    try:
        compiled({"pattern": value})
    except InvalidTool:
        return False
    return True


def _translate_type(schema: JSONObject, translated: JSONObject) -> None:
    written = schema.get("type")
    if written == "file":  # Swagger's.
        translated["type"] = "string"
    elif isinstance(written, str) and written.lower() in TYPES:
        translated["type"] = written.lower()
    elif isinstance(written, list):
        types = list(dict.fromkeys(each for each in written if isinstance(each, str) and each in TYPES))
        if types:
            translated["type"] = types
    if is_nullable(schema):
        if isinstance(translated.get("type"), str):
            translated["type"] = [translated["type"], "null"]
        elif isinstance(translated.get("type"), list) and "null" not in translated["type"]:
            translated["type"] = [*translated["type"], "null"]
        if "enum" in translated and None not in translated["enum"]:
            translated["enum"] = [*translated["enum"], None]


def _translate_texts(schema: JSONObject, translated: JSONObject) -> None:
    for key, most_chars in (("title", _MOST_TITLE_CHARS), ("description", MOST_CHARS_OF_A_SCHEMA)):
        text = description(schema.get(key), most_chars=most_chars)
        if text:
            translated[key] = text
    examples = schema.get("examples")
    found = examples if isinstance(examples, list) else []
    if "example" in schema:
        found = [schema["example"], *found]
    small = [example for example in found if len(compact(example)) <= _MOST_EXAMPLE_CHARS]
    if small:
        translated["examples"] = small[:_MOST_EXAMPLES]


def _translate_bound(schema: JSONObject, translated: JSONObject, exclusive: str, inclusive: str) -> None:
    """OpenAPI 3.0's exclusive bounds are booleans beside the bound, those of 2020-12 are bounds themselves."""
    if schema.get(exclusive) is True and inclusive in translated:
        translated[exclusive] = translated.pop(inclusive)


def _is_anything(_value: Any) -> bool:
    return True


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_list_of_text(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


_KEYWORDS: Mapping[str, Callable[[Any], bool]] = {
    "format": _is_text,
    "enum": lambda value: isinstance(value, list) and bool(value),
    "const": _is_anything,
    "default": _is_anything,
    "deprecated": lambda value: value is True,
    "minimum": _is_number,
    "maximum": _is_number,
    "exclusiveMinimum": _is_number,
    "exclusiveMaximum": _is_number,
    "multipleOf": lambda value: _is_number(value) and value > 0,
    "minLength": _is_count,
    "maxLength": _is_count,
    "pattern": is_pattern,
    "minItems": _is_count,
    "maxItems": _is_count,
    "uniqueItems": lambda value: isinstance(value, bool),
    "minContains": _is_count,
    "maxContains": _is_count,
    "minProperties": _is_count,
    "maxProperties": _is_count,
    "required": _is_list_of_text,
    "dependentRequired": lambda value: isinstance(value, dict) and all(map(_is_list_of_text, value.values())),
    "contentEncoding": _is_text,
    "contentMediaType": _is_text,
}
