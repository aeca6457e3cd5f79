"""Every kind of engine: one row a builder."""

from collections.abc import Callable, Mapping

from engines.a2a.engine import A2AToolEngine
from engines.engine import ToolEngine
from engines.kind_settings import EngineParts
from engines.lm.engine import LMToolEngine
from engines.local.engine import LocalEngine
from engines.mcp.engine import McpToolEngine
from engines.multi import MultiToolEngine
from engines.recipes.engine import RecipeToolEngine
from engines.rest.engine import RestToolEngine
from engines.search import elasticsearch, file, in_memory
from engines.search.web import duckduckgo, google_serper

BuildEngine = Callable[[EngineParts], ToolEngine]

ENGINE_KINDS: Mapping[str, BuildEngine] = {
    "a2a": A2AToolEngine.from_parts,
    "lm": LMToolEngine.from_parts,
    "local": LocalEngine.from_parts,
    "mcp": McpToolEngine.from_parts,
    "multi": MultiToolEngine.from_parts,
    "search/elasticsearch": elasticsearch.from_parts,
    "search/file": file.from_parts,
    "search/in_memory": in_memory.from_parts,
    "search/web/duckduckgo": duckduckgo.from_parts,
    "search/web/google_serper": google_serper.from_parts,
    "recipe": RecipeToolEngine.from_parts,
    "rest": RestToolEngine.from_parts,
}
