"""The `default`s of a JSON Schema put into a document that leaves them out (decision 7); nothing else is changed."""

from typing import Any

from engines.plain import JSONObject, copied


def has_defaults(schema: Any) -> bool:
    """Whether a `default` stands anywhere in the schema, so that most calls need no walk at all."""
    if isinstance(schema, dict):
        return "default" in schema or any(has_defaults(part) for part in schema.values())
    return isinstance(schema, list) and any(has_defaults(part) for part in schema)


class SchemaDefaults:
    """Fills documents of one schema; made once per tool, so that what holds for each place is worked out once.

    Followed are properties, items, prefixItems, additionalProperties, allOf and local `$ref`; not anyOf and oneOf,
    whose branch only the validator knows. A default that would bring itself in again is put in once.
    """

    __slots__ = ("_in_place", "_root")

    def __init__(self, schema: JSONObject) -> None:
        self._root = schema
        self._in_place: dict[int, list[JSONObject]] = {}

    def put_into(self, document: Any) -> Any:
        """Return the document with absent properties filled in; what needs no change is shared, not copied."""
        return self._filled(self._root, document, frozenset())

    def _filled(self, schema: Any, document: Any, inside: frozenset[int]) -> Any:
        """Fill one place; `inside` holds the schemas whose defaults are being put in, so that recursive ones end."""
        for part in self._holding(schema):
            if isinstance(document, dict):
                document = self._object_filled(part, document, inside)
            elif isinstance(document, list):
                document = self._list_filled(part, document, inside)
        return document

    def _holding(self, schema: Any) -> list[JSONObject]:
        """Return the schemas that all hold for the same place: itself, its `$ref` and its `allOf`, each once."""
        if not isinstance(schema, dict):
            return []
        known = self._in_place.get(id(schema))  # The root keeps every part alive, so an id stays its own.
        if known is None:
            known = self._in_place[id(schema)] = self._found_in_place(schema)
        return known

    def _found_in_place(self, schema: JSONObject) -> list[JSONObject]:
        found: list[JSONObject] = []
        waiting: list[Any] = [schema]
        while waiting:
            part = waiting.pop()
            if not isinstance(part, dict) or any(part is known for known in found):
                continue
            found.append(part)
            waiting.append(self._referenced(part.get("$ref")))
            waiting.extend(reversed(part.get("allOf") or []))
        return found

    def _referenced(self, reference: Any) -> Any:
        """Return the part of the root that a local JSON Pointer (RFC 6901) names, None when there is none."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            return None
        part: Any = self._root
        for step in filter(None, reference[1:].split("/")):
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(part, list) and key.isdecimal() and int(key) < len(part):
                part = part[int(key)]
            elif isinstance(part, dict) and key in part:
                part = part[key]
            else:
                return None
        return part

    def _object_filled(self, schema: JSONObject, document: JSONObject, inside: frozenset[int]) -> JSONObject:
        changed = document
        properties = schema.get("properties") or {}
        others = schema.get("additionalProperties")
        for key, value in document.items():
            part = properties.get(key, others)
            filled = self._filled(part, value, inside) if isinstance(value, dict | list) else value
            if filled is not value:
                changed = {**changed, key: filled}
        for key, part in properties.items():
            if key in document or id(part) in inside:
                continue
            default = self._default_of(part)
            if default is not _NONE:
                value = self._filled(part, copied(default), inside | {id(part)})
                changed = {**changed, key: value}
        return changed

    def _list_filled(self, schema: JSONObject, document: list[Any], inside: frozenset[int]) -> list[Any]:
        first = schema.get("prefixItems") or []
        items = schema.get("items")
        if isinstance(items, list):  # Drafts before 2020-12.
            first, items = items, schema.get("additionalItems")
        filled = [
            self._filled(first[index] if index < len(first) else items, value, inside)
            for index, value in enumerate(document)
        ]
        unchanged = all(new is old for new, old in zip(filled, document, strict=True))
        return document if unchanged else filled

    def _default_of(self, schema: Any) -> Any:
        for part in self._holding(schema):
            if "default" in part:
                return part["default"]
        return _NONE


_NONE = object()
