"""What may be drawn at all: one tool of each name, of one namespace if the recipe says so."""

from collections.abc import Iterable, Sequence

from engines.tool import Tool


def pool(tools: Iterable[Tool], namespace: str | None) -> Sequence[Tool]:
    """Return what may be drawn: the first tool of each name (providers refuse two), in the order given."""
    first: dict[str, Tool] = {}
    for tool in tools:
        if namespace in {None, tool.namespace}:
            first.setdefault(tool.qualified_name, tool)
    return list(first.values())


def by_namespace(tools: Iterable[Tool]) -> dict[str, list[Tool]]:
    """Return the tools of each namespace, in the order in which they come."""
    found: dict[str, list[Tool]] = {}
    for tool in tools:
        found.setdefault(tool.namespace, []).append(tool)
    return found
