"""The transport over a child's pipes (rules F22, F23)."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from engines.errors import ConfigurationInvalid, SessionLost
from engines.tool import ErrorType
from tests.unit.engines.mcp.building import STATEFUL, block, called, children, loaded, open_files, running, stdio


@asynccontextmanager
async def leaving_nothing() -> AsyncIterator[None]:
    """Fail when files or processes are left that were not there before."""
    files, processes = open_files(), children()
    yield
    assert children() == processes
    async with asyncio.timeout(5):
        while open_files() > files:  # The loop closes pipes in its next turns.
            await asyncio.sleep(0.01)


async def test_f23_noise_on_stdout_is_left_out_and_stderr_does_not_block() -> None:
    for how in ("noise", "stderr"):
        async with leaving_nothing(), running(block(stdio("mcp_stdio_server.py", how))) as engine:
            await engine.setup("s")
            assert (await called(engine, "count")).result == {"result": 1}


async def test_f23_a_message_over_the_bound_is_an_error_and_the_process_goes_on() -> None:
    where = stdio(max_response_bytes=100_000)
    async with leaving_nothing(), running(block(where, namespace=STATEFUL)) as engine:
        await engine.setup("s")
        failed = await called(engine, "shout", size=500_000)
        assert failed.is_error
        assert "larger than 100000 bytes" in str(failed.error)
        assert (await called(engine, "count")).result == {"result": 1}
        await engine.teardown("s")


async def test_f22_a_process_that_dies_in_a_call_is_a_lost_session() -> None:
    async with leaving_nothing(), running(block(stdio(), namespace=STATEFUL)) as engine:
        await engine.setup("s")
        with pytest.raises(SessionLost, match=r"the process python.* exited with -9"):
            await called(engine, "die")
        with pytest.raises(SessionLost, match="exited with -9"):
            await called(engine, "count")
        await engine.teardown("s")


async def test_each_conversation_has_its_own_process_which_ends_with_it() -> None:
    async with leaving_nothing(), running(block(stdio(), namespace=STATEFUL)) as engine:
        for session in ("a", "b"):
            await engine.setup(session)
        pids = {(await called(engine, "whoami", session)).result["result"] for session in ("a", "b", "a")}
        assert len(pids) == 2
        assert not engine.leaves_behind({"desk"})
        await engine.teardown("a")
        assert len(children() & pids) == 1
        await engine.teardown("b")


async def test_sec_s9_e20_a_server_gets_the_named_variables_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DESK_SECRET", "from the worker")
    monkeypatch.setenv("OTHER_SECRET", "canary")
    where = stdio(environment={"TOKEN": "env:DESK_SECRET", "PLAIN": "as written"})
    async with running(block(where)) as engine:
        await engine.setup("s")
        environment = (await called(engine, "environment")).result["result"]
    assert environment["TOKEN"] == "from the worker"
    assert environment["PLAIN"] == "as written"
    assert not {"OTHER_SECRET", "DESK_SECRET"} & environment.keys()


async def test_e20_a_variable_that_is_not_set_is_named_where_the_connection_is_made() -> None:
    with pytest.raises(ConfigurationInvalid, match="the variable NOT_SET_ANYWHERE is not set"):
        await asyncio.to_thread(loaded, block(stdio(environment={"TOKEN": "env:NOT_SET_ANYWHERE"})))


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ({"command": "/no/such/server"}, "No such file or directory: /no/such/server"),
        (
            stdio("mcp_stdio_server.py", "refuse", environment={"DESK_PASSWORD": "canary-9"}),
            r"exited with 3 \(stderr: cannot open the database with \*\*\*\)",
        ),
        (
            {"command": sys.executable, "args": ["-c", "import time; time.sleep(100)"], "timeout": 0.3},
            "no answer within 0.3 seconds",
        ),
    ],
)
async def test_a_server_that_does_not_start_stops_the_submission(where: dict[str, object], told: str) -> None:
    async with leaving_nothing():
        with pytest.raises(ConfigurationInvalid, match=told) as caught:
            await asyncio.to_thread(loaded, block(where))
        assert caught.value.at == ("registry", 0, "command")


async def test_a_call_past_its_deadline_leaves_the_process_usable() -> None:
    tight = {"defaults": {"timeout_seconds": 5}, "tools": {}}
    async with leaving_nothing(), running(block(stdio(), namespace=tight)) as engine:
        await engine.setup("s")
        assert (await called(engine, "count")).result == {"result": 1}
        assert (await called(engine, "no such")).error_type is ErrorType.unknown_tool
        assert (await called(engine, "count")).result == {"result": 2}
