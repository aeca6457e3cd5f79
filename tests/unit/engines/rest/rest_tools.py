"""What the tests of the engine share: an engine over tools, and the pauses it would have taken."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from engines.rest.engine import RestToolEngine
from engines.rest.settings import RestSettings
from engines.tool import Tool, ToolCall, ToolResult
from engines.toolset import ToolDefaults, Toolset

NAMESPACE = "shop"


class Pauses:
    """Keeps the pauses in place of taking them."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def tool(name: str = "get", method: str = "GET", path: str = "/orders", **metadata: Any) -> Tool:
    """Return a tool over one operation; `base_url` and the like become `rest_base_url`."""
    described = {f"rest_{key}": value for key, value in metadata.items()}
    return Tool(name, NAMESPACE, metadata={"rest_method": method, "rest_path": path, **described})


def call(name: str = "get", /, **arguments: Any) -> ToolCall:
    return ToolCall(name, NAMESPACE, arguments, f"call-{name}")


def engine_of(
    tools: Sequence[Tool], *, defaults: dict[str, Any] | None = None, pause: Pauses | None = None, **settings: Any
) -> RestToolEngine:
    toolset = Toolset(NAMESPACE, None, tuple(tools), ToolDefaults(**(defaults or {})))
    read = RestSettings.model_validate({"type": "rest", **settings})
    return RestToolEngine((toolset,), read, clock=lambda: 0.0, pause=pause or Pauses())


@asynccontextmanager
async def opened(engine: RestToolEngine, session_id: str = "s", **setup: Any) -> AsyncIterator[RestToolEngine]:
    """Open an engine with one session, for the block."""
    await engine.open()
    try:
        await engine.setup(session_id, **setup)
        yield engine
        await engine.teardown(session_id)
    finally:
        await engine.close()


async def asked(tools: Sequence[Tool], made: ToolCall, **more: Any) -> ToolResult:
    """Make one call of one engine."""
    async with opened(engine_of(tools, **more)) as engine:
        (result,) = await engine.execute("s", [made])
        return result
