"""Search engines of a recipe's settings, and their calls."""

from typing import Any

from engines.kind_settings import EngineParts
from engines.kinds import ENGINE_KINDS
from engines.plain import JSONObject
from engines.registry import ToolRegistry
from engines.search.engine import SearchEngine
from engines.tool import Tool, ToolCall, ToolResult
from engines.toolset import Toolset
from tests.unit.engines.stage import no_speak

CORPUS = [
    {"id": "cats", "text": "Cats sleep most of the day and hunt at night.", "topic": "animals"},
    {"id": "dogs", "text": "Dogs bark at cats, and guard the house at night.", "topic": "animals"},
    {"id": "rome", "text": "Rome was not built in a day.", "topic": "cities"},
    {"id": "oslo", "text": "Oslo is the capital of Norway.", "topic": "cities"},
]


def engine_of(settings: JSONObject) -> SearchEngine:
    """Return the engine that a recipe's row makes."""
    toolsets = (Toolset("docs", "s", (Tool("search", "docs"),)),)
    parts = EngineParts("s", settings, toolsets, ToolRegistry(toolsets), no_speak, lambda *_: engine_of(settings))
    engine = ENGINE_KINDS[settings["type"]](parts)
    assert isinstance(engine, SearchEngine)
    return engine


async def results_of(engine: SearchEngine, *arguments: JSONObject, seed: int = 0) -> list[ToolResult]:
    """Return what calls with these arguments come to, in a session of their own."""
    await engine.open()
    try:
        await engine.setup("session", seed=seed)
        try:
            calls = [ToolCall("search", "docs", each, str(place)) for place, each in enumerate(arguments)]
            return await engine.execute("session", calls)
        finally:
            await engine.teardown("session")
    finally:
        await engine.close()


async def result_of(settings: JSONObject, arguments: JSONObject, *, seed: int = 0) -> ToolResult:
    """Return what one call comes to."""
    (result,) = await results_of(engine_of(settings), arguments, seed=seed)
    return result


async def ids_of(settings: JSONObject, arguments: JSONObject, *, seed: int = 0) -> list[Any]:
    """Return the ids of the documents that one call finds."""
    result = await result_of(settings, arguments, seed=seed)
    assert result.error is None, result.error
    return [document["id"] for document in result.result]
