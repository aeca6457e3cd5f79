"""Every kind of registry entry: one row a loader."""

from collections.abc import Callable, Mapping

from engines.loaders import files, inline
from engines.loaders.entries import Surroundings
from engines.plain import JSONObject
from engines.tool import Tool

Loader = Callable[[JSONObject, Surroundings], list[Tool]]

LOADER_KINDS: Mapping[str, Loader] = {
    "file": files.load,
    "inline": inline.load,
}

UNAVAILABLE_LOADER_KINDS = ("mcp", "openapi", "python", "rest")
"""Known by name, so that a recipe may hold them; loading them says that this version cannot."""
