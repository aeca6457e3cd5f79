"""Which of several tools of one name a call means."""

from collections.abc import Sequence

from engines.plain import JSONObject
from engines.schemas import compiled, problems
from engines.tool import Tool


def best_match(overloads: Sequence[Tool], arguments: JSONObject) -> Tool | None:
    """Return the only one, unchecked; of several the valid ones, else all, then the largest overlap of keys (D70)."""
    if len(overloads) <= 1:
        return overloads[0] if overloads else None
    valid = [tool for tool in overloads if not problems(compiled(tool.parameters), arguments)]
    return max(valid or overloads, key=lambda tool: _overlap(tool, arguments))


def _overlap(tool: Tool, arguments: JSONObject) -> int:
    return len(arguments.keys() & (tool.parameters.get("properties") or {}).keys())
