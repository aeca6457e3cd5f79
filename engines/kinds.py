"""Every kind of engine: one row a builder."""

from collections.abc import Callable, Mapping

from engines.engine import ToolEngine
from engines.kind_settings import EngineParts
from engines.lm import LMToolEngine
from engines.local import LocalEngine
from engines.multi import MultiToolEngine

BuildEngine = Callable[[EngineParts], ToolEngine]

ENGINE_KINDS: Mapping[str, BuildEngine] = {
    "lm": LMToolEngine.from_parts,
    "local": LocalEngine.from_parts,
    "multi": MultiToolEngine.from_parts,
}

UNAVAILABLE_ENGINE_KINDS = ("mcp", "rest")
"""Known by name, so that a recipe may hold them; building them says that this version cannot."""
