"""Every kind of registry entry: one row a loader."""

from collections.abc import Callable, Mapping

from engines.loaders import a2a, ensembles, files, inline, mcp, python, recipe
from engines.loaders.entries import Surroundings
from engines.loaders.openapi import loader as openapi
from engines.plain import JSONObject
from engines.tool import Tool

Loader = Callable[[JSONObject, Surroundings], list[Tool]]

LOADER_KINDS: Mapping[str, Loader] = {
    "a2a": a2a.load,
    "ensemble": ensembles.load,
    "file": files.load,
    "inline": inline.load,
    "mcp": mcp.load,
    "openapi": openapi.load,
    "python": python.load,
    "recipe": recipe.load,
    "rest": openapi.load,
}
