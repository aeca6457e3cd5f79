"""The three shapes a file of tools may have, read into tools (rules D72, D73)."""

from typing import Any

from engines.errors import InvalidTool
from engines.tool import DEFAULT_NAMESPACE, Tool


def tools_of(document: Any, *, namespace: str | None) -> list[Tool]:
    """Read `{namespace: [tool]}`, `[tool]` or `{name: tool}`.

    Whose namespace holds: the tool's own, then `namespace`, then the file's, then "default".
    """
    if isinstance(document, list):
        return [Tool.from_dict(item, namespace=namespace or DEFAULT_NAMESPACE) for item in document]
    if isinstance(document, dict) and document:
        if all(isinstance(part, list) for part in document.values()):
            return [
                Tool.from_dict(item, namespace=namespace or own) for own, items in document.items() for item in items
            ]
        if all(isinstance(part, dict) for part in document.values()):
            return [
                Tool.from_dict({"name": name, **item}, namespace=namespace or DEFAULT_NAMESPACE)
                for name, item in document.items()
            ]
    raise InvalidTool(
        "holds no tools: it must be a list of tools, an object of lists ({namespace: [tool, …]}) "
        "or an object of tools ({name: tool, …})"
    )
