"""The three shapes a file of tools may have, read into tools (rules D72, D73)."""

from collections.abc import Callable, Iterator
from typing import Any

from engines.errors import InvalidTool
from engines.tool import DEFAULT_NAMESPACE, Tool

LeaveOut = Callable[[InvalidTool], None]


def _refuse(error: InvalidTool) -> None:
    raise error


def tools_of(document: Any, *, namespace: str | None, leave_out: LeaveOut = _refuse) -> list[Tool]:
    """Read `{namespace: [tool]}`, `[tool]` or `{name: tool}`.

    Whose namespace holds: the tool's own, then `namespace`, then the file's, then "default". `leave_out` is told of a
    definition that cannot be read; when it returns, the others are.
    """
    tools = []
    for definition, files_namespace in _definitions_of(document):
        try:
            tools.append(Tool.from_dict(definition, namespace=namespace or files_namespace))
        except InvalidTool as error:
            leave_out(error)
    return tools


def _definitions_of(document: Any) -> Iterator[tuple[Any, str]]:
    """Yield each definition with the namespace that the file gives it."""
    if isinstance(document, list):
        yield from ((item, DEFAULT_NAMESPACE) for item in document)
    elif isinstance(document, dict) and document and all(isinstance(part, list) for part in document.values()):
        yield from ((item, own) for own, items in document.items() for item in items)
    elif isinstance(document, dict) and document and all(isinstance(part, dict) for part in document.values()):
        yield from (({"name": name, **item}, DEFAULT_NAMESPACE) for name, item in document.items())
    else:
        raise InvalidTool(
            "holds no tools: it must be a list of tools, an object of lists ({namespace: [tool, …]}) "
            "or an object of tools ({name: tool, …})"
        )
