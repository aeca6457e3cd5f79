"""Schemas of OpenAPI translated to JSON Schema 2020-12, each self-contained: what it refers to comes under `$defs`."""

from collections import deque
from typing import Any, Literal

from engines.loaders.openapi.discriminators import with_tag
from engines.loaders.openapi.inlining import inlined
from engines.loaders.openapi.keywords import is_nullable, is_pattern, translated_keywords
from engines.loaders.openapi.naming import definition_name
from engines.loaders.openapi.references import Document, parts_of
from engines.plain import JSONObject

Direction = Literal["request", "response"]

MOST_NODES = 3000
MOST_LEVELS = 40

_ONE = ("not", "contains", "propertyNames", "if", "then", "else", "unevaluatedItems", "unevaluatedProperties")
_LISTS = ("allOf", "anyOf", "prefixItems")
_MAPS = ("properties", "patternProperties", "dependentSchemas")
_COMBINATIONS = ("$ref", "allOf", "anyOf", "oneOf")
_BESIDE_A_REFERENCE = frozenset({"description", "title", "default", "example", "examples", "deprecated"})
_HIDING = {"request": "readOnly", "response": "writeOnly"}


class Translation:
    """One schema in the making, for one direction; larger ones than `most_nodes` are cut, not refused.

    `schema` translates the pieces, `completed` adds the definitions that they refer to.
    """

    def __init__(self, document: Document, direction: Direction, *, most_nodes: int = MOST_NODES) -> None:
        self.document = document
        self._hiding = _HIDING[direction]
        self._nodes_left = most_nodes
        self._names: dict[str, str] = {}
        self._waiting: deque[str] = deque()

    def schema(self, written: Any, *, level: int = 0) -> JSONObject:
        """Translate one schema; what is none, lies too deep or comes too late stands for any value, as `{}`."""
        translated = self._translated(written, level, frozenset())
        if isinstance(translated, bool):
            return {} if translated else {"not": {}}
        return translated

    def completed(self, root: JSONObject) -> JSONObject:
        """Return the root with `$defs`: what is small or used once is put in place, what is recursive stays there."""
        definitions: dict[str, Any] = {}
        while self._waiting:
            reference = self._waiting.popleft()
            definitions[self._names[reference]] = self.schema(self.document.part(reference))
        return inlined(root, definitions)

    def is_hidden(self, written: Any) -> bool:
        """Whether a property has no place in this direction: `readOnly` in a request, `writeOnly` in a response."""
        target = self.document.resolved(written) if isinstance(written, dict) else None
        flags = (part.get(self._hiding) for part in (written, target) if isinstance(part, dict))
        return any(flag is True for flag in flags)

    def _translated(self, written: Any, level: int, hidden: frozenset[str]) -> JSONObject | bool:
        if isinstance(written, bool):
            return written
        self._nodes_left -= 1
        if not isinstance(written, dict) or level > MOST_LEVELS or self._nodes_left < 0:
            return {}
        if "$ref" in written and not self.document.siblings_count:
            kept = {key: value for key, value in written.items() if key in _BESIDE_A_REFERENCE}
            translated = {"$ref": self._reference(written["$ref"]), **translated_keywords(kept)}
            return _with_null(translated) if is_nullable(written) else translated
        hidden |= self._hidden_names(written)
        translated = translated_keywords(written)
        self._nodes_left -= len(translated) + len(translated.get("enum", ()))
        if "required" in translated:
            translated["required"] = [name for name in translated["required"] if name not in hidden]
        if "$ref" in written:
            translated = {"$ref": self._reference(written["$ref"]), **translated}
        self._translate_parts(written, translated, level + 1, hidden)
        return _with_null(translated) if is_nullable(written) else translated

    def _translate_parts(self, written: JSONObject, translated: JSONObject, level: int, hidden: frozenset[str]) -> None:
        nothing: frozenset[str] = frozenset()
        for key in _ONE:
            if isinstance(written.get(key), dict | bool):
                translated[key] = self._translated(written[key], level, nothing)
        for key in _LISTS:
            parts = written.get(key)
            if isinstance(parts, list) and parts:
                beside = hidden if key == "allOf" else nothing
                translated[key] = [self._translated(part, level, beside) for part in parts]
        self._translate_alternatives(written, translated, level)
        for key in _MAPS:
            parts = written.get(key)
            if isinstance(parts, dict):
                translated[key] = {
                    name: self._translated(part, level, nothing)
                    for name, part in parts.items()
                    if name not in hidden and (key != "patternProperties" or is_pattern(name))
                }
        if isinstance(written.get("additionalProperties"), dict | bool):
            translated["additionalProperties"] = self._translated(written["additionalProperties"], level, nothing)
        match written.get("items"):
            case list() as first if first:  # Of drafts before 2020-12.
                translated["prefixItems"] = [self._translated(part, level, nothing) for part in first]
            case dict() | bool() as items:
                translated["items"] = self._translated(items, level, nothing)

    def _translate_alternatives(self, written: JSONObject, translated: JSONObject, level: int) -> None:
        """Make `oneOf` an `anyOf`: those of documents overlap so often that strictly no value would fit just one."""
        branches = written.get("oneOf")
        if not isinstance(branches, list) or not branches:
            return
        alternatives = [
            with_tag(self._translated(branch, level, frozenset()), branch, written.get("discriminator"), self.document)
            for branch in branches
        ]
        if "anyOf" in translated:
            translated["allOf"] = [*translated.get("allOf", ()), {"anyOf": alternatives}]
        else:
            translated["anyOf"] = alternatives

    def _hidden_names(self, written: JSONObject) -> frozenset[str]:
        """Return the properties that are left out here, also those that an `allOf` says so of."""
        parts = [written, *(part for part in parts_of(written, "allOf") if isinstance(part, dict))]
        resolved = [self.document.resolved(part) for part in parts]
        return frozenset(
            name
            for part in resolved
            if isinstance(part, dict) and isinstance(part.get("properties"), dict)
            for name, schema in part["properties"].items()
            if self.is_hidden(schema)
        )

    def _reference(self, reference: Any) -> str:
        self.document.part(reference)  # InvalidTool where there is nothing, while the place is known.
        if reference not in self._names:
            self._names[reference] = definition_name(reference, set(self._names.values()))
            self._waiting.append(reference)
        return f"#/$defs/{self._names[reference]}"


def _with_null(translated: JSONObject) -> JSONObject:
    """Let null in beside a combination: `nullable` with a `type` is done where the type is translated."""
    if "type" in translated or not any(key in translated for key in _COMBINATIONS):
        return translated
    told: JSONObject = {key: translated.pop(key) for key in ("title", "description", "default") if key in translated}
    return {**told, "anyOf": [translated, {"type": "null"}]}
