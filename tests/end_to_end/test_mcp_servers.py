"""MCP servers that nobody here wrote, listed, pinned and called over stdio, streamable HTTP and SSE."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from engines.errors import SessionLost
from engines.plain import JSONObject
from engines.tool import ErrorType
from tests.unit.engines.mcp.building import STATEFUL, block, called, children, free_port, listens, running

SERVERS = Path(__file__).parents[2] / ".venv" / "test-servers"
EVERYTHING = SERVERS / "node_modules/@modelcontextprotocol/server-everything/dist/index.js"
MEMORY = SERVERS / "node_modules/@modelcontextprotocol/server-memory/dist/index.js"
TIME = SERVERS / "python/bin/mcp-server-time"


def needed(server: Path) -> str:
    """Return the server's path; skip the test where it is not installed."""
    if not server.exists() or (server.suffix == ".js" and shutil.which("node") is None):
        pytest.skip(f"{server.name} is not installed: scripts/ensure_test_servers.sh")
    return str(server)


@asynccontextmanager
async def everything_on(transport: str, port: int) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run the everything server on a port."""
    process = await asyncio.create_subprocess_exec(
        "node",
        needed(EVERYTHING),
        transport,
        env={**os.environ, "PORT": str(port)},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(30):
            while not await listens(port):
                await asyncio.sleep(0.05)
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@asynccontextmanager
async def everything(transport: str) -> AsyncIterator[JSONObject]:
    """Return the keys that reach an everything server over a transport."""
    if transport == "stdio":
        yield {"command": "node", "args": [needed(EVERYTHING), "stdio"]}
        return
    port = free_port()
    async with everything_on({"http": "streamableHttp", "sse": "sse"}[transport], port):
        yield {"url": f"http://localhost:{port}"}


@pytest.mark.parametrize("transport", ["stdio", "http", "sse"])
@pytest.mark.parametrize("namespace", [{}, STATEFUL], ids=["shared", "per conversation"])
async def test_d45_the_everything_server_answers_on_every_transport(transport: str, namespace: JSONObject) -> None:
    before = children()
    async with everything(transport) as where, running(block(where, namespace=namespace)) as engine:
        await engine.setup("s")
        assert (await called(engine, "echo", message="hi")).result == [{"type": "text", "text": "Echo: hi"}]
        assert "12" in (await called(engine, "get-sum", a=5, b=7)).result[0]["text"]
        weather = (await called(engine, "get-structured-content", location="New York")).result
        assert weather.keys() == {"temperature", "conditions", "humidity"}
        image = (await called(engine, "get-tiny-image")).result
        assert "image" in {piece["type"] for piece in image}
        assert (await called(engine, "get-sum", a="five", b=7)).error_type is ErrorType.validation
        await engine.teardown("s")
    assert children() == before


async def test_sec_s9_the_everything_server_sees_no_variable_that_it_was_not_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary")
    async with everything("stdio") as where:
        where["environment"] = {"DESK_TOKEN": "given"}
        async with running(block(where)) as engine:
            await engine.setup("s")
            (piece,) = (await called(engine, "get-env")).result
    assert "given" in piece["text"]
    assert "canary" not in piece["text"]


async def test_a_long_call_past_its_deadline_leaves_the_session_usable() -> None:
    tight = {**STATEFUL, "defaults": {"timeout_seconds": 2}}
    async with everything("http") as where, running(block(where, namespace=tight)) as engine:
        await engine.setup("s")
        assert (
            await called(engine, "trigger-long-running-operation", duration=30, steps=3)
        ).error_type is ErrorType.timeout
        assert not (await called(engine, "echo", message="still here")).is_error
        await engine.teardown("s")


async def test_f3_a_restarted_server_lost_the_sessions_and_they_are_made_again() -> None:
    """Each session of this server has its own switch: a toggle tells in which session it is made."""
    port = free_port()
    async with (
        everything_on("streamableHttp", port) as process,
        running(block({"url": f"http://localhost:{port}"}, namespace=STATEFUL)) as engine,
    ):
        for session in ("a", "b"):
            await engine.setup(session)
            assert "Started" in await toggled(engine, session)
        state = await engine.get_session_state("a")
        process.kill()
        await process.wait()
        assert (await called(engine, "echo", "a", message="x")).error_type is ErrorType.network
        async with everything_on("streamableHttp", port):
            with pytest.raises(SessionLost, match="session"):
                await called(engine, "echo", "a", message="x")
            await engine.teardown("a")
            await engine.setup("a again", initial_state=state)
            assert "Stopped" in await toggled(engine, "a again")
            await engine.teardown("a again")
            await engine.teardown("b")


async def toggled(engine: Any, session_id: str) -> str:
    result = await called(engine, "toggle-simulated-logging", session_id)
    assert result.error is None
    return str(result.result[0]["text"])


async def test_the_memory_server_remembers_for_its_conversation(tmp_path: Path) -> None:
    where = {"command": "node", "args": [needed(MEMORY)], "environment": {"MEMORY_FILE_PATH": str(tmp_path / "m.json")}}
    async with running(block(where, namespace=STATEFUL)) as engine:
        await engine.setup("s")
        ada = {"name": "Ada", "entityType": "person", "observations": ["likes engines"]}
        assert not (await called(engine, "create_entities", entities=[ada])).is_error
        found = (await called(engine, "search_nodes", query="engines")).result
        assert [entity["name"] for entity in found["entities"]] == ["Ada"]
        await engine.teardown("s")


@pytest.mark.parametrize("namespace", [{}, STATEFUL], ids=["shared", "per conversation"])
async def test_the_time_server_answers_and_its_failures_are_results(namespace: JSONObject) -> None:
    async with running(block({"command": needed(TIME)}, namespace=namespace)) as engine:
        await engine.setup("s")
        zones = {"source_timezone": "Europe/Lisbon", "time": "12:00", "target_timezone": "Asia/Tokyo"}
        converted = await called(engine, "convert_time", **zones)
        assert "Asia/Tokyo" in str(converted.result)
        failed = await called(engine, "convert_time", **{**zones, "target_timezone": "Moon/Base"})
        assert failed.error_type is ErrorType.execution
        assert "Moon/Base" in str(failed.error)
        await engine.teardown("s")
