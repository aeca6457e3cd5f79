"""Engines of MCP servers as a recipe makes them: listed, pinned, and built from what was stored."""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from engines.configuration import ToolsConfiguration
from engines.engine import ToolEngine
from engines.loading import load_registry, pinned
from engines.plain import JSONObject
from engines.registry import ToolRegistry
from engines.tool import ToolCall, ToolResult
from engines.wiring import build_engine
from tests.unit.engines.stage import no_speak

SUPPORT = Path(__file__).parents[3] / "support"
STATEFUL = {"stateful": True}


def stdio(script: str = "mcp_stdio_server.py", *args: str, **more: Any) -> JSONObject:
    """Return the keys of a server that is started here."""
    return {"command": sys.executable, "args": [str(SUPPORT / script), *args], **more}


def block(where: JSONObject, *, engine: JSONObject | None = None, namespace: JSONObject | None = None) -> JSONObject:
    """Return a tools block with the namespace `desk` on one server."""
    return {
        "registry": [{"type": "mcp", "namespace": "desk", "engine": "live", **where}],
        "engines": {"live": {"type": "mcp", **(where if engine is None else engine)}},
        "namespaces": {"desk": namespace or {}},
    }


def loaded(written: JSONObject) -> tuple[ToolsConfiguration, ToolRegistry]:
    """List the tools, pin them, and read what was pinned, as a worker does."""
    configuration = ToolsConfiguration.model_validate(written)
    registry = load_registry(configuration, folder=Path(), environment={})
    stored = ToolsConfiguration.model_validate(pinned(configuration, registry))
    return stored, load_registry(stored, folder=Path(), environment={})


@asynccontextmanager
async def running(written: JSONObject) -> AsyncIterator[ToolEngine]:
    """Return the engine of a block, open until the block ends."""
    configuration, registry = await asyncio.to_thread(loaded, written)
    engine = build_engine(configuration, registry, speak_for=no_speak)
    await engine.open()
    try:
        yield engine
    finally:
        await engine.close()


async def called(engine: ToolEngine, name: str, session_id: str = "s", **arguments: Any) -> ToolResult:
    """Call one tool in a session that is set up."""
    (result,) = await engine.execute(session_id, [ToolCall(name, "desk", arguments, "c")])
    return result


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


@asynccontextmanager
async def server_process(*args: object) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run the test server as a process that listens on the last argument, until the block ends."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(SUPPORT / "mcp_stdio_server.py"), *map(str, args), stderr=asyncio.subprocess.DEVNULL
    )
    try:
        async with asyncio.timeout(20):
            while not await listens(int(str(args[-1]))):
                await asyncio.sleep(0.05)
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def listens(port: int) -> bool:
    """Return whether somebody listens on a port."""
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    await writer.wait_closed()
    return True


def processes(*, group: int) -> list[int]:
    """Return the processes of a group, dead ones that nobody reaped too."""
    return [pid for pid, (_, its) in _all_processes().items() if its == group]


def children() -> set[int]:
    """Return the children of this process, dead ones that nobody reaped too."""
    return {pid for pid, (parent, _) in _all_processes().items() if parent == os.getpid()}


def _all_processes() -> dict[int, tuple[int, int]]:
    """Return (parent, group) of every process."""
    found = {}
    for folder in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            after_name = (folder / "stat").read_text().rpartition(")")[2].split()
            found[int(folder.name)] = (int(after_name[1]), int(after_name[2]))
    return found


def open_files() -> int:
    """Return how many file descriptors this process has open."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())
