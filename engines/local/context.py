"""What a local tool function may ask for besides its arguments: a parameter annotated `Context`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engines.plain import JSONObject
from engines.tool import Tool


@dataclass(frozen=True, slots=True)
class Context:
    """Where a call stands (rule E2). `tool` is None in a module's setup and teardown functions."""

    auxdata: Mapping[str, Any]
    """What the recipe or the job says beside the conversation; not to be changed."""
    tool: Tool | None
    namespace: JSONObject
    """The session's own scratch for the tool's namespace: plain JSON, changed in place, restored after a crash."""
    session_id: str = ""
    seed: int = 0
    """The session's seed: draw chance from it, and the same job comes out the same on any worker."""
