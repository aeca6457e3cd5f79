"""One function behind two tools of one name."""

from typing import Any

from engines.local.context import Context


def get(context: Context, **arguments: Any) -> dict[str, Any]:
    assert context.tool is not None
    return {**arguments, "overload": list(context.tool.parameters["properties"])}
