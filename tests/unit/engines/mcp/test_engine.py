"""The engine over real servers: streamable HTTP, SSE, stdio; shared connections and those of a conversation."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from engines.errors import SessionLost, ToolFailed
from engines.kind_settings import EngineParts
from engines.mcp.engine import McpToolEngine
from engines.plain import JSONObject
from engines.registry import ToolRegistry
from engines.tool import ErrorType, Tool, ToolCall
from engines.toolset import Toolset
from tests.support.mcp_servers import Host, desk_host
from tests.unit.engines.mcp.building import STATEFUL, block, called, open_files, running, stdio
from tests.unit.engines.stage import no_speak


@dataclass
class Place:
    """A server on one transport: the keys that reach it, a tool that counts, and what it counts by session."""

    where: JSONObject
    tool: str
    arguments: JSONObject

    async def counted(self, engine: Any, session_id: str) -> int:
        result = await called(engine, self.tool, session_id, **self.arguments)
        assert result.error is None
        (value,) = result.result.values()
        return len(value) if isinstance(value, list) else value


@pytest.fixture(params=["http", "sse", "stdio"])
async def place(request: pytest.FixtureRequest) -> AsyncIterator[Place]:
    if request.param == "stdio":
        yield Place(stdio(), "count", {})
        return
    async with desk_host(request.param) as host:
        yield Place({"url": host.url}, "note", {"text": "x"})


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    async with desk_host() as host:
        yield host


# Transports and sessions


async def test_d45_d37_each_conversation_has_its_own_session_on_every_transport(place: Place) -> None:
    async with running(block(place.where, namespace=STATEFUL)) as engine:
        await engine.setup("a")
        await engine.setup("b")
        counted = [await place.counted(engine, session) for session in ("a", "a", "b", "a", "b")]
        await engine.teardown("a")
        await engine.teardown("b")
    assert counted == [1, 2, 1, 3, 2]


async def test_d45_a_stateless_namespace_shares_one_connection(place: Place) -> None:
    async with running(block(place.where)) as engine:
        await engine.setup("a")
        await engine.setup("b")
        counted = [await place.counted(engine, session) for session in ("a", "b", "a")]
    assert counted == [1, 2, 3]


async def test_d37_two_batches_of_a_conversation_are_in_one_session(host: Host) -> None:
    async with running(block({"url": host.url}, namespace=STATEFUL)) as engine:
        await engine.setup("s")
        for text in ("one", "two"):
            await called(engine, "note", text=text)
        assert list(host.desk.notes.values()) == [["one", "two"]]
        await engine.teardown("s")
    assert host.sessions.open == set()
    assert host.sessions.requests.count(("DELETE", "/mcp")) == 1


async def test_session_says_for_all_namespaces_how_a_conversation_stands_to_the_server(host: Host) -> None:
    where = {"url": host.url}
    async with running(block(where, engine={**where, "session": "per_conversation"})) as engine:
        await engine.setup("s")
        await called(engine, "note", text="x")
        assert (await engine.get_session_state("s"))["scratch"] != {}  # type: ignore[index]
        await engine.teardown("s")
    async with running(block(where, engine={**where, "session": "shared"}, namespace=STATEFUL)) as engine:
        await engine.setup("s")
        assert (await engine.get_session_state("s"))["scratch"] == {}  # type: ignore[index]


async def test_no_session_is_opened_for_a_job_without_tools_of_the_namespace(host: Host) -> None:
    async with running(block({"url": host.url}, namespace=STATEFUL)) as engine:
        await engine.setup("s", namespaces={"elsewhere"})
        await engine.teardown("s")
    assert host.sessions.opened == []


# Results


async def test_d38_d42_structured_content_else_the_blocks_and_errors_as_text(host: Host) -> None:
    async with running(block({"url": host.url})) as engine:
        await engine.setup("s")
        assert (await called(engine, "add", a=1, b=2)).result == {"total": 3}
        assert (await called(engine, "pieces")).result == [
            {"type": "text", "text": "hi"},
            {"type": "text", "text": "there"},
        ]
        failed = await called(engine, "boom")
    assert (failed.error, failed.error_type) == ("Error executing tool boom: no such order", ErrorType.execution)


async def test_d18_d38_a_failed_call_leaves_the_others_of_its_batch_alone(host: Host) -> None:
    async with running(block({"url": host.url})) as engine:
        await engine.setup("s")
        names: list[tuple[str, JSONObject]] = [("add", {"a": 1, "b": 1}), ("boom", {}), ("add", {"a": 2, "b": 2})]
        calls = [ToolCall(name, "desk", arguments, str(n)) for n, (name, arguments) in enumerate(names)]
        results = await engine.execute("s", calls)
    assert [(result.call_id, result.is_error) for result in results] == [("0", False), ("1", True), ("2", False)]


async def test_u21_arguments_may_be_missing_or_json_text(host: Host) -> None:
    async with running(block({"url": host.url})) as engine:
        await engine.setup("s")
        for given in _NO_ARGUMENTS:
            call = ToolCall.from_dict({"name": "desk::pieces", "arguments": given, "id": "c"})
            assert not (await engine.execute("s", [call]))[0].is_error
        text = ToolCall.from_dict({"name": "desk::add", "arguments": '{"a": 1, "b": 2}', "id": "c"})
        assert (await engine.execute("s", [text]))[0].result == {"total": 3}


_NO_ARGUMENTS: list[Any] = [None, "", {}, "{}", "[1]"]


async def test_e21_every_server_error_is_a_result_of_a_known_type(host: Host) -> None:
    async with running(block({"url": host.url}, namespace={"defaults": {"timeout_seconds": 0.2}})) as engine:
        await engine.setup("s")
        assert (await called(engine, "wait")).error_type is ErrorType.timeout
        assert (await called(engine, "boom")).error_type is ErrorType.execution
        assert (await called(engine, "add", a="x", b=1)).error_type is ErrorType.validation


# Deadlines and cancelling


@pytest.mark.parametrize("namespace", [{}, STATEFUL])
async def test_a_call_past_its_deadline_is_cancelled_on_the_server_and_the_session_goes_on(
    host: Host, namespace: JSONObject
) -> None:
    tools = {"defaults": {"timeout_seconds": 0.3}, **namespace}
    async with running(block({"url": host.url}, namespace=tools)) as engine:
        await engine.setup("s")
        assert (await called(engine, "wait")).error_type is ErrorType.timeout
        await host.desk.until(lambda desk: desk.cancelled == 1)
        assert (await called(engine, "add", a=1, b=1)).result == {"total": 2}
        await engine.teardown("s")


async def test_a_cancelled_job_cancels_the_servers_work(host: Host) -> None:
    async with running(block({"url": host.url})) as engine:
        await engine.setup("s")
        calling = asyncio.create_task(called(engine, "wait"))
        await host.desk.until(lambda desk: desk.begun == 1)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        await host.desk.until(lambda desk: desk.cancelled == 1)


async def test_max_in_flight_bounds_the_calls_at_once(host: Host) -> None:
    where = {"url": host.url}
    async with running(block(where, engine={**where, "max_in_flight": 3})) as engine:
        for number in range(6):
            await engine.setup(str(number))
        calls = [asyncio.create_task(called(engine, "wait", str(number))) for number in range(6)]
        await host.desk.until(lambda desk: desk.begun == 3)
        for _ in range(50):
            await asyncio.sleep(0)
        assert host.desk.begun == 3
        host.desk.gate.set()
        assert [result.error for result in await asyncio.gather(*calls)] == [None] * 6


# Lost sessions, restored and torn down


async def test_f3_a_session_that_the_server_forgot_is_lost_and_never_a_fresh_one(host: Host) -> None:
    async with running(block({"url": host.url}, namespace=STATEFUL)) as engine:
        await engine.setup("s")
        await called(engine, "note", text="one")
        host.sessions.refuse["POST"] = 404
        with pytest.raises(SessionLost, match=r"the session 's' on the backend of 'desk' is lost: HTTP 404"):
            await called(engine, "note", text="two")
        await engine.teardown("s")


async def test_f3_a_restored_state_is_made_again_by_replaying_the_calls(host: Host) -> None:
    async with running(block({"url": host.url}, namespace=STATEFUL)) as engine:
        await engine.setup("s")
        for text in ("one", "two"):
            await called(engine, "note", text=text)
        await called(engine, "boom")
        state = await engine.get_session_state("s")
        await engine.teardown("s")
        await engine.setup("again", initial_state=state)
        assert (await called(engine, "note", "again", text="three")).result == {"result": ["one", "two", "three"]}
        await engine.teardown("again")
    assert host.sessions.open == set()


async def test_f3_with_on_lost_session_fail_a_state_is_not_made_again(host: Host) -> None:
    where = {"url": host.url}
    async with running(block(where, engine={**where, "on_lost_session": "fail"}, namespace=STATEFUL)) as engine:
        await engine.setup("fresh", initial_state={"history": [], "scratch": {}})
        await called(engine, "note", "fresh", text="one")
        state = await engine.get_session_state("fresh")
        await engine.teardown("fresh")
        with pytest.raises(SessionLost, match="on_lost_session: fail"):
            await engine.setup("again", initial_state=state)
        assert await engine.get_session_state("again") is None
    assert host.sessions.open == set()


async def test_f3_a_replay_that_fails_leaves_no_session(host: Host) -> None:
    quick = {**STATEFUL, "defaults": {"timeout_seconds": 0.2}}
    async with running(block({"url": host.url}, namespace=quick)) as engine:
        await engine.setup("s")
        await called(engine, "wait")
        state = await engine.get_session_state("s")
        with pytest.raises(SessionLost, match="desk::wait failed while it was replayed: no answer in time"):
            await engine.setup("again", initial_state=state)
        await engine.teardown("s")
    assert host.sessions.open == set()


async def test_f3_another_process_ends_a_session_by_its_scratch_alone(host: Host) -> None:
    written = block({"url": host.url}, namespace=STATEFUL)
    async with running(written) as dead, running(written) as reaper:
        await dead.setup("s")
        assert dead.leaves_behind({"desk"})
        assert not dead.leaves_behind({"elsewhere"})
        scratch = await dead.get_session_scratch("s")
        assert len(host.sessions.open) == 1
        await reaper.reap("s", scratch=scratch, namespaces={"desk"})
        assert host.sessions.open == set()
        await reaper.reap("s", scratch=scratch, namespaces={"desk"})  # Harmless when it is gone ...
        await reaper.reap("s", scratch={}, namespaces={"desk"})  # ... or was never there.
        await dead.teardown("s")


async def test_f37_a_teardown_that_the_server_refuses_is_told_and_can_be_repeated(host: Host) -> None:
    async with running(block({"url": host.url}, namespace=STATEFUL)) as engine:
        await engine.setup("s")
        scratch = await engine.get_session_scratch("s")
        host.sessions.refuse["DELETE"] = 503
        with pytest.raises(Exception, match="the session was not ended: HTTP 503"):
            await engine.teardown("s")
        del host.sessions.refuse["DELETE"]
        await engine.reap("s", scratch=scratch, namespaces={"desk"})
    assert host.sessions.open == set()


async def test_e22_when_the_second_server_cannot_be_reached_the_first_session_is_ended(host: Host) -> None:
    async with AsyncExitStack() as stack:
        second = await stack.enter_async_context(desk_host())
        written: JSONObject = {
            "registry": [
                {"type": "mcp", "namespace": "desk", "engine": "one", "url": host.url},
                {"type": "mcp", "namespace": "other", "engine": "two", "url": second.url},
            ],
            "engines": {"one": {"type": "mcp", "url": host.url}, "two": {"type": "mcp", "url": second.url}},
            "namespaces": {"desk": STATEFUL, "other": STATEFUL},
        }
        engine = await stack.enter_async_context(running(written))
        second.sessions.refuse["POST"] = 500
        with pytest.raises(ToolFailed, match="HTTP 500"):
            await engine.setup("s")
        assert await engine.get_session_state("s") is None
    assert len(host.sessions.opened) == 1
    assert host.sessions.open == set()


async def test_files_and_tasks_are_as_before_after_many_sessions(host: Host) -> None:
    async with running(block({"url": host.url}, namespace=STATEFUL)) as engine:
        await engine.setup("first")
        await engine.teardown("first")
        files, tasks = open_files(), len(asyncio.all_tasks())
        for number in range(20):
            await engine.setup(str(number))
        await asyncio.gather(*(called(engine, "note", str(number), text="x") for number in range(20)))
        for number in range(20):
            await engine.teardown(str(number))
        async with asyncio.timeout(10):
            # Two more may be kept for the next request; the server's ends, in this process too, close a turn later.
            while open_files() > files + 2 or len(asyncio.all_tasks()) > tasks + 2:
                await asyncio.sleep(0.01)
    assert host.sessions.open == set()


# Tools without a server


async def test_d44_a_tool_that_tells_of_no_server_is_an_error_result() -> None:
    toolsets = (Toolset("desk", "live", (Tool("add", "desk"),)),)
    engine = McpToolEngine.from_parts(
        EngineParts(
            "live", {"type": "mcp"}, toolsets, ToolRegistry(toolsets), no_speak, lambda _n, _a: pytest.fail("no routes")
        )
    )
    await engine.setup("s")
    result = await called(engine, "add")
    assert result.error == "tool 'desk::add' names no server (mcp_base_url). Was it loaded via MCPToolLoader?"


async def test_a_tool_that_the_recipe_defines_is_called_on_the_engines_own_server(host: Host) -> None:
    written: JSONObject = {
        "registry": [{"type": "inline", "namespace": "desk", "tools": [{"name": "boom", "description": "Ours."}]}],
        "engines": {"live": {"type": "mcp", "url": host.url}},
    }
    async with running(written) as engine:
        await engine.setup("s")
        assert (await called(engine, "boom")).error == "Error executing tool boom: no such order"
