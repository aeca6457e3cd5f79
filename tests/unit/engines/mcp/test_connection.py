"""The task that owns a connection: opened in time or not at all, and ended from any task."""

import asyncio
import logging
import sys
from collections.abc import Callable

import pytest

from engines.mcp.child import Command
from engines.mcp.connection import Connection
from engines.mcp.failures import ServerUnreachable
from engines.mcp.reaching import _StdioLink
from tests.unit.engines.mcp.building import SUPPORT, children

TINY = Command(("/bin/sh", str(SUPPORT / "mcp_server.sh")))
SILENT = Command((sys.executable, "-c", "import time; time.sleep(1000)"))


NewChildren = Callable[[], set[int]]


@pytest.fixture
def new_children() -> NewChildren:
    """Say which children there are besides those that other tests keep (servers that many share)."""
    before = children()
    return lambda: children() - before


async def opened(command: Command, seconds: float = 10.0) -> Connection:
    link = _StdioLink("stdio:test", command, 1 << 20)
    return await Connection.open(link, mode="legacy", seconds=seconds, tools_changed=lambda: None)


async def test_a_connection_may_be_opened_used_and_closed_by_different_tasks(new_children: NewChildren) -> None:
    connection = await asyncio.create_task(opened(TINY))
    calls = [asyncio.create_task(connection.call("count", {})) for _ in range(5)]
    assert [getattr(await call, "structured_content")["calls"] for call in calls] == [1, 2, 3, 4, 5]  # noqa: B009
    await asyncio.create_task(connection.close())
    await connection.close()
    assert connection.lost is not None
    assert new_children() == set()


async def test_a_server_that_does_not_shake_hands_in_time_is_ended(
    monkeypatch: pytest.MonkeyPatch, new_children: NewChildren
) -> None:
    monkeypatch.setattr("engines.mcp.child._GRACE_SECONDS", 0.2)
    tasks = len(asyncio.all_tasks())
    with pytest.raises(ServerUnreachable, match=r"stdio:test: no answer within 0\.2 seconds"):
        await opened(SILENT, seconds=0.2)
    assert new_children() == set()
    assert len(asyncio.all_tasks()) == tasks


async def test_an_opening_that_is_cancelled_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, new_children: NewChildren
) -> None:
    monkeypatch.setattr("engines.mcp.child._GRACE_SECONDS", 0.2)
    opening = asyncio.create_task(opened(SILENT))
    async with asyncio.timeout(5):
        while not new_children():
            await asyncio.sleep(0.01)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert new_children() == set()


async def test_a_close_that_is_cancelled_still_ends_the_server(new_children: NewChildren) -> None:
    connection = await opened(TINY)
    closing = asyncio.create_task(connection.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    async with asyncio.timeout(5):
        while new_children():
            await asyncio.sleep(0.01)


async def test_sec_s9_the_library_below_writes_no_session_ids_into_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        connection = await opened(TINY)
        logging.getLogger("mcp.client.streamable_http").info("Received session ID: canary")
        await connection.close()
    assert "canary" not in caplog.text
