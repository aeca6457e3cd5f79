"""The fields of an object that is a request's body, where it is nothing but its fields (rule D52)."""

from dataclasses import dataclass
from typing import Any

from engines.loaders.openapi.references import Document, parts_of
from engines.plain import JSONObject

# What may stand beside the fields of an object without saying that the body is more than its fields.
_SAYING_NOTHING = frozenset(
    {
        "title", "description", "example", "examples", "default", "deprecated", "externalDocs", "discriminator", "xml",
        "nullable", "readOnly", "writeOnly", "minProperties", "maxProperties", "$schema", "$id", "$comment", "$anchor",
        "$defs", "definitions", "format",
    }
)  # fmt: skip
_FIELDS = frozenset(
    {"type", "properties", "required", "additionalProperties", "unevaluatedProperties", "allOf", "$ref"}
)


@dataclass(frozen=True, slots=True)
class Fields:
    """An object's properties, with those of everything that it is an `allOf` of."""

    properties: JSONObject
    required: frozenset[str]
    is_closed: bool


def fields_of(schema: Any, document: Document) -> Fields | None:
    """Return an object's fields; None for what is no object, may have other fields, or is one of several things."""
    return _fields_of(schema, document, ())


def _fields_of(schema: Any, document: Document, above: tuple[Any, ...]) -> Fields | None:
    schema = _without_reference(schema, document)
    if not isinstance(schema, dict) or any(schema is each for each in above) or not _is_plain_object(schema):
        return None
    own = schema.get("properties") or {}
    if not isinstance(own, dict):
        return None
    properties, required = dict(own), set(_names_in(schema.get("required")))
    is_closed = schema.get("additionalProperties") is False or schema.get("unevaluatedProperties") is False
    for part in parts_of(schema, "allOf"):
        fields = _fields_of(part, document, (*above, schema))
        if fields is None or any(properties.get(name, each) != each for name, each in fields.properties.items()):
            return None
        properties |= fields.properties
        required |= fields.required
        is_closed = is_closed or fields.is_closed
    if not properties and not above:
        return None
    return Fields(properties, frozenset(required), is_closed)


def _without_reference(schema: Any, document: Document) -> Any:
    """Follow a `$ref`; where other keywords hold beside it, both stand in an `allOf`."""
    if not isinstance(schema, dict) or "$ref" not in schema:
        return schema
    beside = {key: value for key, value in schema.items() if key != "$ref" and key not in _SAYING_NOTHING}
    if beside and document.siblings_count:
        return {**beside, "allOf": [{"$ref": schema["$ref"]}, *parts_of(beside, "allOf")]}
    return document.resolved(schema)


def _is_plain_object(schema: JSONObject) -> bool:
    if schema.get("type", "object") not in ("object", ["object"], ["object", "null"]):
        return False
    if (
        schema.get("additionalProperties", False) is not False
        or schema.get("unevaluatedProperties", False) is not False
    ):
        return False
    return all(
        key in _SAYING_NOTHING or key in _FIELDS or key.startswith("x-") or _says_only_required(key, part)
        for key, part in schema.items()
    )


def _says_only_required(key: str, parts: Any) -> bool:
    """Whether an `anyOf` only says which fields are needed together; providers refuse one at the top, so it goes."""
    return (
        key in {"anyOf", "oneOf"}
        and isinstance(parts, list)
        and all(isinstance(part, dict) and part.keys() == {"required"} for part in parts)
    )


def _names_in(written: Any) -> list[str]:
    return [name for name in written if isinstance(name, str)] if isinstance(written, list) else []
