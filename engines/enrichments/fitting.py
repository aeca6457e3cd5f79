"""Whether one tool's output can be another's input, by their JSON Schemas' types (rule D78)."""

from typing import Any

from engines.plain import JSONObject

_UNKNOWN = ""
_SHARED_PROPERTIES, _OPAQUE, _INTEGER_AND_NUMBER = 0.9, 0.7, 0.8


def type_fit(given: Any, wanted: Any) -> float:
    """Return 0 (cannot be) to 1 (the same type) for an output's and an input's schema.

    An array fits arrays only. Two objects fit by the names of their properties, and well enough when those of one are
    not known. Of several types a schema allows, the best fit counts; null is none.
    """
    return max((_fit(one, other, given, wanted) for one in types_of(given) for other in types_of(wanted)), default=0.0)


def types_of(schema: Any) -> list[str]:
    """Return the types that a schema allows besides null; one empty name when it does not say."""
    if not isinstance(schema, dict):
        return [_UNKNOWN]
    written = schema.get("type")
    if written is None and (parts := schema.get("anyOf") or schema.get("oneOf")):
        return list(dict.fromkeys(kind for part in parts for kind in types_of(part)))
    if written is None and "properties" in schema:
        return ["object"]
    if written is None and schema.get("enum"):
        written = ["string"] if all(isinstance(value, str) for value in schema["enum"]) else None
    kinds = written if isinstance(written, list) else [written]
    return [_UNKNOWN if kind is None else str(kind) for kind in kinds if kind != "null"]


def _fit(one: str, other: str, given: JSONObject, wanted: JSONObject) -> float:
    if one == other == "object":
        return _objects_fit(_properties(given), _properties(wanted))
    if one == other:
        return 1.0
    return _INTEGER_AND_NUMBER if {one, other} == {"integer", "number"} else 0.0


def _objects_fit(given: set[str], wanted: set[str]) -> float:
    if not given or not wanted:
        return _OPAQUE
    return _SHARED_PROPERTIES if given & wanted else 0.0


def _properties(schema: Any) -> set[str]:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return set(properties) if isinstance(properties, dict) else set()
