"""Definitions put in the places that refer to them, where that keeps a schema small: some providers know no `$ref`."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from engines.plain import JSONObject

MOST_COPIED_NODES = 400
"""How many nodes one definition may add, over all the places that it is copied to."""

_PREFIX = "#/$defs/"
_ANNOTATIONS = frozenset({"description", "title", "default", "examples", "deprecated"})


def inlined(root: JSONObject, definitions: dict[str, Any]) -> JSONObject:
    """Return the root with the definitions it needs: small ones and those used once in place, the rest in `$defs`."""
    if not definitions:
        return root
    return _Inlining(root, definitions).result()


class _Inlining:
    def __init__(self, root: JSONObject, definitions: dict[str, Any]) -> None:
        self._root = root
        self._definitions = definitions
        self._used_by = {name: Counter(_references(schema)) for name, schema in definitions.items()}
        self._uses = sum(self._used_by.values(), Counter(_references(root)))
        self._weights: dict[str, int] = {}
        self._in_place: set[str] = set()
        self._recursive: set[str] = set()

    def result(self) -> JSONObject:
        for name in self._bottom_up():
            self._decide(name)
        kept: JSONObject = {}
        root = self._filled(self._root)
        waiting = list(_references(root))
        while waiting:
            name = waiting.pop(0)
            if name not in kept:
                kept[name] = self._filled(self._definitions[name])
                waiting.extend(_references(kept[name]))
        return {**root, "$defs": kept} if kept else root

    def _decide(self, name: str) -> None:
        weight = _nodes(self._definitions[name])
        weight += sum(
            times * self._weights[used] for used, times in self._used_by[name].items() if used in self._in_place
        )
        self._weights[name] = weight
        once = self._uses[name] == 1
        if name not in self._recursive and (once or weight * self._uses[name] <= MOST_COPIED_NODES):
            self._in_place.add(name)

    def _bottom_up(self) -> list[str]:
        """Return every definition after those it uses, and note which of them reach themselves (Tarjan's algorithm)."""
        order: list[str] = []
        numbers: dict[str, int] = {}
        lowest: dict[str, int] = {}
        path: list[str] = []
        for start in self._definitions:
            work: list[tuple[str, Iterator[str]]] = [] if start in numbers else [(start, iter(self._used_by[start]))]
            while work:
                name, rest = work[-1]
                if name not in numbers:
                    numbers[name] = lowest[name] = len(numbers)
                    path.append(name)
                used = next(rest, None)
                if used is None:
                    work.pop()
                    self._close(name, numbers, lowest, path, order)
                    if work:
                        lowest[work[-1][0]] = min(lowest[work[-1][0]], lowest[name])
                elif used not in numbers:
                    work.append((used, iter(self._used_by[used])))
                elif used in path:
                    lowest[name] = min(lowest[name], numbers[used])
        return order

    def _close(
        self, name: str, numbers: dict[str, int], lowest: dict[str, int], path: list[str], order: list[str]
    ) -> None:
        """End one definition; when it is the first of a circle, so is the circle."""
        if lowest[name] != numbers[name]:
            return
        circle = path[path.index(name) :]
        del path[path.index(name) :]
        order.extend(reversed(circle))
        if len(circle) > 1 or name in self._used_by[name]:
            self._recursive.update(circle)

    def _filled(self, schema: Any) -> Any:
        if isinstance(schema, list):
            return [self._filled(part) for part in schema]
        if not isinstance(schema, dict):
            return schema
        name = _name_in(schema)
        if name not in self._in_place:
            return {key: self._filled(part) for key, part in schema.items()}
        beside = {key: self._filled(part) for key, part in schema.items() if key != "$ref"}
        return _joined(self._filled(self._definitions[name]), beside)


def _joined(target: Any, beside: JSONObject) -> Any:
    """Return a definition with what stood beside its reference; both hold, and the words nearer to the place win."""
    if not beside:
        return target
    if isinstance(target, dict) and beside.keys() <= _ANNOTATIONS:
        return {**target, **beside}
    return {**beside, "allOf": [target, *beside.get("allOf", ())]}


def _name_in(schema: JSONObject) -> str:
    """Return the definition that a schema refers to, "" for none: in an example `$ref` may be anything."""
    reference = schema.get("$ref")
    return reference.removeprefix(_PREFIX) if isinstance(reference, str) and reference.startswith(_PREFIX) else ""


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        name = _name_in(schema)
        if name:
            yield name
        for part in schema.values():
            yield from _references(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from _references(part)


def _nodes(schema: Any) -> int:
    if isinstance(schema, dict):
        return 1 + sum(_nodes(part) for part in schema.values())
    if isinstance(schema, list):
        return 1 + sum(_nodes(part) for part in schema)
    return 1
