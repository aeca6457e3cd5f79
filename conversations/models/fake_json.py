"""Schema-valid JSON documents from a seeded chance: what the offline model fills arguments and results with."""

import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from random import Random
from types import MappingProxyType
from typing import Any

import jsonschema_rs
import orjson

from conversations.messages import JSONObject
from conversations.models.fake_numbers import fake_number, numbers_in
from conversations.models.fake_patterns import matching_text
from conversations.models.fake_schemas import HARD_KEYWORDS, merged, resolved
from conversations.models.fake_values import (
    format_of_name,
    formatted,
    identifier,
    person,
    snake,
    text_pool,
    words,
)

_TRIES = 24
_SHALLOW = 5
_DEEPEST = 24
_OPTIONAL_SHARE = 0.75
_NULL_SHARE = 0.1
_SAID_EXAMPLE = re.compile(r"(?:e\.g\.?,?|for example,?|such as|like)\s+['\"]?([^'\"(),;.]{2,40})['\"]?")


def fake_document(
    schema: Any, chance: Random, *, hint: str = "", known: Mapping[str, Any] = MappingProxyType({}), turn: int = 0
) -> Any:
    """A document that the schema accepts.

    `hint` is text whose cities, codes and numbers are preferred (the user's words); the n-th `turn` prefers the n-th of
    them. `known` are values to repeat under the same names (a call's arguments in its result). Of schemas that
    contradict themselves the best try is returned.
    """
    writer = _Writer(schema, chance, hint, known, turn)
    document = writer.document(schema, "", 0)
    if not HARD_KEYWORDS.search(writer.text):
        return document
    validator = _validator(writer.text)
    for _ in range(_TRIES):
        if validator is None or validator.is_valid(document):
            break
        document = writer.document(schema, "", 0)
    return document


@lru_cache(maxsize=256)
def _validator(schema: bytes) -> jsonschema_rs.Validator | None:
    try:
        return jsonschema_rs.validator_for(orjson.loads(schema), retriever=_refused)
    except (ValueError, jsonschema_rs.ReferencingError):
        return None


def _refused(uri: str) -> Any:
    raise LookupError(f"remote schemas are not fetched: {uri}")


class _Writer:
    """One document in the making."""

    __slots__ = ("chance", "hint", "known", "lowered", "numbers", "root", "text", "turn")

    def __init__(self, root: Any, chance: Random, hint: str, known: Mapping[str, Any], turn: int) -> None:
        self.root, self.chance, self.hint, self.known, self.turn = root, chance, hint, known, turn
        self.text, self.lowered = orjson.dumps(root, option=orjson.OPT_SORT_KEYS), hint.lower()
        self.numbers = numbers_in(hint)

    def document(self, schema: Any, name: str, depth: int) -> Any:
        """A value for a schema found under a property of this name."""
        if not isinstance(schema, dict):
            return self._text({}, name) if schema is not False else None
        schema = resolved(schema, self.root, self.chance, prefer_simple=depth > _SHALLOW)
        if "const" in schema:
            return schema["const"]
        if isinstance(schema.get("enum"), list) and schema["enum"]:
            return self._preferred(schema["enum"])
        kind = self._kind(schema) if depth <= _DEEPEST else "null"
        if name in self.known and _fits(kind, self.known[name]):
            return self.known[name]
        return self._of_kind(kind, schema, name, depth)

    def _of_kind(self, kind: str, schema: JSONObject, name: str, depth: int) -> Any:
        match kind:
            case "object":
                return self._object(schema, depth)
            case "array":
                return self._array(schema, name, depth)
            case "integer" | "number":
                whole = kind == "integer"
                return fake_number(schema, snake(name), self.chance, whole=whole, said=self.numbers[self.turn :])
            case "boolean":
                return self.chance.random() < 0.7  # noqa: PLR2004 - most flags of a call are on
            case "null":
                return None
            case _:
                return self._text(schema, name)

    def _kind(self, schema: JSONObject) -> str:
        kinds = schema.get("type")
        if isinstance(kinds, str):
            return kinds
        if isinstance(kinds, list) and kinds:
            solid = [kind for kind in kinds if kind != "null"]
            nullable = len(solid) < len(kinds) and self.chance.random() < _NULL_SHARE
            return "null" if nullable or not solid else str(self.chance.choice(solid))
        return _implied_kind(schema)

    def _preferred(self, values: Sequence[Any]) -> Any:
        """One of the values: what the hint names, else any."""
        if self.hint:
            named = self._named_in_hint([value for value in values if isinstance(value, str) and value])
            if self.turn < len(named):
                return named[self.turn]
        return self.chance.choice(values)

    def _named_in_hint(self, values: Sequence[str]) -> list[str]:
        """Those of the values that the hint names, in the order in which it names them."""
        places = {value: self.lowered.find(value.lower()) for value in values}
        return sorted((value for value, place in places.items() if place >= 0), key=places.__getitem__)

    def _object(self, schema: JSONObject, depth: int) -> JSONObject:
        properties = schema.get("properties")
        properties = properties if isinstance(properties, dict) else {}
        required = [name for name in _list(schema.get("required")) if isinstance(name, str)]
        share = _OPTIONAL_SHARE if depth <= _SHALLOW else 0.0
        chosen = [name for name in properties if name in required or self.chance.random() < share]
        if properties and not chosen and depth == 0:
            chosen = [next(iter(properties))]
        chosen += [name for name in required if name not in properties]
        chosen += _dependents(schema, chosen)
        least, most = schema.get("minProperties", 0), schema.get("maxProperties", math.inf)
        chosen += [name for name in properties if name not in chosen][: max(0, least - len(chosen))]
        optional = [name for name in reversed(chosen) if name not in required]
        for name in optional[: max(0, len(chosen) - int(most)) if most != math.inf else 0]:
            chosen.remove(name)
        document = {name: self.document(self._property(schema, properties, name), name, depth + 1) for name in chosen}
        self._fill_map(schema, document, depth, least)
        return document

    def _property(self, schema: JSONObject, properties: JSONObject, name: str) -> Any:
        found = [properties[name]] if name in properties else []
        for pattern, inner in _mapping(schema.get("patternProperties")).items():
            if _searches(pattern, name):
                found.append(inner)
        if not found:
            return schema.get("additionalProperties", {})
        return found[0] if len(found) == 1 else merged(found)

    def _fill_map(self, schema: JSONObject, document: JSONObject, depth: int, least: int) -> None:
        """Keys of a map: an object that declares what its values are, not which it has."""
        values = schema.get("additionalProperties")
        patterns = _mapping(schema.get("patternProperties"))
        is_map = isinstance(values, dict) and not schema.get("properties")
        wanted = max(least, len(document) + (2 if is_map and depth <= _SHALLOW else 0))
        for _ in range(_TRIES * 4):
            if len(document) >= wanted:
                return
            name = self._key(schema, patterns)
            if name not in document:
                document[name] = self.document(self._property(schema, {}, name), name, depth + 1)

    def _key(self, schema: JSONObject, patterns: JSONObject) -> str:
        names = schema.get("propertyNames")
        if isinstance(names, dict):
            return str(self.document({"type": "string", **names}, "key", _DEEPEST))
        if patterns and schema.get("additionalProperties") is False:
            return matching_text(self.chance.choice(list(patterns)), self.chance) or "key"
        return words(self.chance, 1) + (str(self.chance.randrange(10)) if self.chance.random() < 0.5 else "")  # noqa: PLR2004

    def _array(self, schema: JSONObject, name: str, depth: int) -> list[Any]:
        heads = schema.get("prefixItems")
        items = schema.get("items", {})
        if isinstance(items, list):  # drafts before 2020-12
            heads, items = items, schema.get("additionalItems", {})
        heads = _list(heads)
        least, most = schema.get("minItems", 0), schema.get("maxItems", math.inf)
        wanted = 1 + self.chance.randrange(3) if depth <= _SHALLOW else 0
        count = int(min(max(least, wanted, len(heads) if heads else 0), most))
        if items is False:
            count = min(count, len(heads))
        schemas = [heads[place] if place < len(heads) else items for place in range(count)]
        if "contains" in schema:
            for place in range(min(len(schemas), schema.get("minContains", 1)) or 0):
                schemas[place] = merged(
                    [part for part in (schemas[place], schema["contains"]) if isinstance(part, dict)]
                )
        singular = name.removesuffix("s")
        document: list[Any] = []
        for inner in schemas:
            value = self.document(inner, singular, depth + 1)
            for _ in range(_TRIES if schema.get("uniqueItems") else 0):
                if value not in document:
                    break
                value = self.document(inner, singular, depth + 1)
            document.append(value)
        if schema.get("uniqueItems"):
            document = [value for place, value in enumerate(document) if value not in document[:place]]
        return document

    def _text(self, schema: JSONObject, name: str) -> str:
        least, most = int(schema.get("minLength") or 0), schema.get("maxLength", math.inf)
        if isinstance(schema.get("pattern"), str):
            for _ in range(_TRIES):
                text = matching_text(schema["pattern"], self.chance)
                if text is not None and least <= len(text) <= most:
                    return text
        if isinstance(schema.get("format"), str):
            text = formatted(schema["format"], self.chance)
            if text is not None:
                return text
        text = self._likely_text(schema, snake(name))
        while len(text) < least:
            text += " " + words(self.chance, 1)
        return text if len(text) <= most else text[: int(most)].rstrip().ljust(least, "a")

    def _likely_text(self, schema: JSONObject, name: str) -> str:
        examples = [
            value for value in (*_list(schema.get("examples")), schema.get("example")) if isinstance(value, str)
        ]
        if examples:
            return str(self._preferred(examples))
        description = schema.get("description")
        described = description.lower()[:60] if isinstance(description, str) else ""
        pool = text_pool(described if name == "name" and text_pool(described) else name)
        if pool is not None and self.hint:
            named = self._named_in_hint(pool)
            if self.turn < len(named):
                return named[self.turn]
        said = _SAID_EXAMPLE.search(description) if isinstance(description, str) else None
        if said and self.chance.random() < 0.5:  # noqa: PLR2004
            return said[1].strip()
        suggested = None if name == "name" and pool else format_of_name(name)
        if pool is None and suggested is None:
            pool = text_pool(described)
        if suggested is not None:
            return formatted(suggested, self.chance) or person(self.chance)
        if re.search(r"(^|_)(ids?|code|number|key|token)$", name):
            return identifier(name, self.chance)
        return self.chance.choice(pool) if pool else words(self.chance, 2)


def _implied_kind(schema: JSONObject) -> str:
    """The type of a schema that names none."""
    for kind, keywords in _IMPLYING.items():
        if keywords & schema.keys():
            return kind
    return "string"


_IMPLYING = {
    "object": {"properties", "required", "additionalProperties", "patternProperties", "minProperties", "propertyNames"},
    "array": {"items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"},
    "string": {"pattern", "format", "minLength", "maxLength"},
    "number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
}


def _fits(kind: str, value: Any) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case _:
            return False


def _dependents(schema: JSONObject, chosen: Sequence[str]) -> list[str]:
    rules = _mapping(schema.get("dependentRequired")) | _mapping(schema.get("dependencies"))
    wanted: list[str] = []
    for name in chosen:
        wanted += [other for other in _list(rules.get(name)) if other not in chosen and other not in wanted]
    return wanted


def _searches(pattern: str, name: str) -> bool:
    try:
        return re.search(pattern, name) is not None
    except re.error:
        return False


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _mapping(value: Any) -> JSONObject:
    return value if isinstance(value, dict) else {}
