"""Many conversations on one stateful server, and a server that is killed again and again: nothing leaks."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from engines.errors import SessionLost
from engines.plain import JSONObject
from tests.support.mcp_servers import desk_host
from tests.unit.engines.mcp.building import STATEFUL, SUPPORT, block, called, children, open_files, running

CONVERSATIONS = 200
RESTARTS = 1000
TINY: JSONObject = {"command": "/bin/sh", "args": [str(SUPPORT / "mcp_server.sh")]}


async def conversation(engine: Any, number: int) -> list[str]:
    """Write three notes of its own, and return what the server kept for it."""
    session = f"conversation {number}"
    await engine.setup(session)
    try:
        notes: list[str] = []
        for turn in range(3):
            result = await called(engine, "note", session, text=f"{number}.{turn}")
            assert result.error is None
            notes = result.result["result"]
        return notes
    finally:
        await engine.teardown(session)


async def test_200_conversations_on_one_stateful_server_do_not_see_each_other_and_leave_nothing() -> None:
    async with desk_host() as host, running(block({"url": host.url}, namespace=STATEFUL)) as engine:
        await conversation(engine, 0)
        files, processes, tasks = open_files(), children(), len(asyncio.all_tasks())
        async with asyncio.timeout(100):
            notes = await asyncio.gather(*(conversation(engine, number) for number in range(CONVERSATIONS)))
        assert notes == [[f"{number}.{turn}" for turn in range(3)] for number in range(CONVERSATIONS)]
        assert len(host.sessions.opened) == CONVERSATIONS + 1
        assert host.sessions.open == set()
        await engine.close()
        async with asyncio.timeout(10):
            while open_files() > files or len(asyncio.all_tasks()) > tasks:  # The server's ends close a turn later.
                await asyncio.sleep(0.01)
        assert children() == processes


async def until_noticed(engine: Any) -> None:
    """Wait until the engine knows that its shared server is gone."""
    (server,) = set(engine._engines["live"]._servers.values())
    async with asyncio.timeout(10):
        while server._shared.lost is None:
            await asyncio.sleep(0)


async def test_f22_a_server_that_is_killed_1000_times_is_started_again_and_leaves_nothing() -> None:
    async with running(block(TINY)) as engine:
        await engine.setup("s")
        assert not (await called(engine, "count")).is_error
        files, processes, tasks = open_files(), len(children()), len(asyncio.all_tasks())
        pids = set()
        for _ in range(RESTARTS):
            result = await called(engine, "count")
            assert result.error is None
            pids.add(result.result["pid"])
            os.kill(result.result["pid"], signal.SIGKILL)
            await until_noticed(engine)
            assert (await called(engine, "count")).result["calls"] == 1
        assert len(pids) == RESTARTS
        assert len(children()) == processes
        assert open_files() <= files
        assert len(asyncio.all_tasks()) <= tasks
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists() and pid in children()]


async def test_f22_a_conversations_server_that_is_killed_is_lost_and_leaves_nothing() -> None:
    async with running(block(TINY, namespace=STATEFUL)) as engine:
        files, processes = open_files(), children()
        for number in range(100):
            session = str(number)
            await engine.setup(session)
            result = await called(engine, "count", session)
            os.kill(result.result["pid"], signal.SIGKILL)
            with pytest.raises(SessionLost):
                await called(engine, "count", session)
            state = await engine.get_session_state(session)
            await engine.teardown(session)
            await engine.setup(f"{number} again", initial_state=state)
            assert (await called(engine, "count", f"{number} again")).result["calls"] == 2
            await engine.teardown(f"{number} again")
        assert children() == processes
        assert open_files() <= files
