"""Schemas made plain before a document is written: references followed, `allOf` merged, a branch of a choice taken."""

import re
from collections.abc import Sequence
from random import Random
from typing import Any

from conversations.messages import JSONObject

# Keywords that a plain writer cannot promise to hold: a document is then checked, and written anew until it passes.
HARD_KEYWORDS = re.compile(
    rb'"(?:not|oneOf|anyOf|allOf|if|contains|dependentSchemas|dependencies|propertyNames|patternProperties|pattern|uniqueItems'
    rb'|unevaluatedProperties|unevaluatedItems|multipleOf|minProperties|minLength|maxLength)":'
)
_CHOICES = ("oneOf", "anyOf")
_MAX_HOPS = 64
_NULL_BRANCH_SHARE = 0.1
_TIGHTER: dict[str, Any] = {
    "minimum": max,
    "exclusiveMinimum": max,
    "minLength": max,
    "minItems": max,
    "minProperties": max,
    "maximum": min,
    "exclusiveMaximum": min,
    "maxLength": min,
    "maxItems": min,
    "maxProperties": min,
}


def resolved(schema: JSONObject, root: Any, chance: Random, *, prefer_simple: bool = False) -> JSONObject:
    """The schema without `$ref`, `allOf`, `anyOf`, `oneOf` and `if` at its top; each call may take other branches."""
    for _ in range(_MAX_HOPS):
        if "$ref" in schema:
            rest = {key: value for key, value in schema.items() if key != "$ref"}
            schema = merged([_target(schema["$ref"], root), rest])
        elif isinstance(schema.get("allOf"), list):
            rest = {key: value for key, value in schema.items() if key != "allOf"}
            schema = _joined([rest, *schema["allOf"]])
        elif key := next((key for key in _CHOICES if isinstance(schema.get(key), list) and schema[key]), None):
            rest = {other: value for other, value in schema.items() if other != key}
            schema = merged([rest, _branch(schema[key], root, chance, prefer_simple=prefer_simple)])
        elif "if" in schema:
            schema = _decided(schema, chance)
        else:
            return schema
    return {}


def merged(schemas: Sequence[Any]) -> JSONObject:
    """One schema that asks for all that these ask for; contradictions are left to the later one."""
    result: JSONObject = {}
    for schema in schemas:
        for key, value in (schema if isinstance(schema, dict) else {}).items():
            result[key] = _both(key, result[key], value) if key in result else value
    return result


def _both(key: str, first: Any, second: Any) -> Any:
    match first, second:
        case dict(), dict() if key in {"properties", "patternProperties"}:
            shared = {name: merged([first[name], second[name]]) for name in first.keys() & second.keys()}
            return first | second | shared
        case dict(), dict() if key in {"items", "additionalProperties"}:
            return merged([first, second])
        case list(), list() if key in {"required", "allOf"}:
            return [*first, *(value for value in second if value not in first)]
        case list(), list() if key == "enum":
            return [value for value in first if value in second] or second
        case _ if key == "type":
            return _both_types(first, second)
        case ((int() | float()), (int() | float())) if key in _TIGHTER:
            return _TIGHTER[key](first, second)
        case _:
            return second


def _both_types(first: Any, second: Any) -> Any:
    known = first if isinstance(first, list) else [first]
    wanted = second if isinstance(second, list) else [second]
    shared = [kind for kind in wanted if kind in known or (kind == "integer" and "number" in known)]
    return shared[0] if len(shared) == 1 else shared or second


def _joined(parts: Sequence[Any]) -> JSONObject:
    """`allOf`: references stay to be followed, so several of them need a nested `allOf`."""
    references = [part for part in parts if isinstance(part, dict) and "$ref" in part]
    plain = merged([part for part in parts if part not in references])
    if not references:
        return plain
    first, *others = references
    result = merged([plain, first])
    return result | {"allOf": others} if others else result


def _branch(branches: Sequence[Any], root: Any, chance: Random, *, prefer_simple: bool) -> Any:
    solid = [branch for branch in branches if not _is_null(branch) and branch is not False] or list(branches)
    nulls = [branch for branch in branches if _is_null(branch)]
    if nulls and (prefer_simple or chance.random() < _NULL_BRANCH_SHARE):
        return nulls[0]
    if prefer_simple:
        return min(solid, key=lambda branch: _weight(branch, root))
    return chance.choice(solid)


def _weight(branch: Any, root: Any) -> int:
    """How much deeper a branch leads: scalars before arrays before objects."""
    schema = _target(branch["$ref"], root) if isinstance(branch, dict) and "$ref" in branch else branch
    if not isinstance(schema, dict):
        return 0
    if "properties" in schema or schema.get("type") == "object":
        return 2 + len(schema.get("required", ()))
    return 1 if schema.get("type") == "array" or _CHOICES[0] in schema or _CHOICES[1] in schema else 0


def _decided(schema: JSONObject, chance: Random) -> JSONObject:
    rest = {key: value for key, value in schema.items() if key not in {"if", "then", "else"}}
    if "else" in schema and chance.random() < 0.5:  # noqa: PLR2004 - either way
        return merged([rest, schema["else"]])
    return merged([rest, schema["if"], schema.get("then", {})])


def _is_null(branch: Any) -> bool:
    return isinstance(branch, dict) and branch.get("type") == "null"


def _target(reference: Any, root: Any) -> Any:
    """What a local reference points to; a remote or broken one asks for nothing."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return {}
    node = root
    for part in reference[1:].split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~").replace("%25", "%")
        if isinstance(node, list) and name.isdigit() and int(name) < len(node):
            node = node[int(name)]
        elif isinstance(node, dict) and name in node:
            node = node[name]
        else:
            return {}
    return node
