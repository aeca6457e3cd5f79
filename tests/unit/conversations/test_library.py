"""Conversations in a program of one's own (rules A12, A15, A17, A19, A21), and the page that shows how."""

import asyncio
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import structlog

from conversations import library
from conversations.errors import ModelUnavailable, RunnerUsed, ToolsInvalid
from conversations.library import conversation
from conversations.messages import assistant, system, user
from conversations.policy.limits import Limits
from conversations.state import State
from engines.errors import InvalidTool
from engines.local.context import Context
from engines.local.declared import tool
from engines.local.engine import LocalEngine
from engines.local.functions import bound
from engines.tool import Tool, ToolResult
from engines.toolset import Toolset
from tests.support.scripted_model import Line, ScriptedModel, calls, script

ASK = Tool("ask", "people", parameters={"type": "object", "properties": {"what": {"type": "string"}}})


def add(a: int, b: int = 1) -> int:
    """Add two numbers.

    Args:
        a: The first one.
        b: The second one.
    """
    return a + b


async def count(context: Context) -> int:
    """Count how often it was called."""
    context.namespace["count"] = int(context.namespace.get("count", 0)) + 1
    return int(context.namespace["count"])


def example(page: Path) -> str:
    found = re.search(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    assert found is not None
    return found[1]


def test_the_example_of_the_page_runs(checkout: Path) -> None:
    page = checkout / "docs" / "library.md"
    program = [sys.executable, "-W", "error", "-c", example(page)]
    ran = subprocess.run(program, cwd=checkout, capture_output=True, text=True, timeout=60, check=True)
    roles = [line.split()[0] for line in ran.stdout.splitlines() if line]
    assert roles[:3] == ["assistant", "tool", "assistant"]
    assert "clear" in ran.stdout
    assert ran.stderr == ""
    written = [line for line in example(page).splitlines() if line.strip()]
    assert len(written) <= 10


async def test_a21_functions_are_tools_by_their_signature_and_docstring() -> None:
    model = script(calls(("a", "default__add", {"a": 2})), assistant("three"))
    async with conversation("2 + 1?", model=model, tools=[add], instructions="Add.") as runner:
        assert await runner.until_done() == assistant("three")
    assert model.asked[0].messages == [system("Add."), user("2 + 1?")]
    assert model.asked[0].tools == [
        {
            "type": "function",
            "function": {
                "name": "default__add",
                "description": "Add two numbers.",
                "parameters": {
                    "type": "object",
                    "properties": {
                        "a": {"type": "integer", "description": "The first one."},
                        "b": {"type": "integer", "default": 1, "description": "The second one."},
                    },
                    "required": ["a"],
                    "additionalProperties": False,
                },
            },
        }
    ]
    assert runner.state.tool_results[0]["result"] == 3


async def test_a15_a_runner_is_iterated_once_and_another_one_goes_on_with_its_state() -> None:
    async with conversation("hi", model=script(assistant("hello"))) as runner:
        await runner.until_done()
        with pytest.raises(RunnerUsed):
            await runner.until_done()
    state = State.from_json(runner.state.to_json())
    async with conversation(model=script(assistant("bye")), state=state) as again:
        again.append_messages(user("bye"))
        await again.until_done()
    assert state.messages == [user("hi"), assistant("hello"), user("bye"), assistant("bye")]


async def test_a12_max_iterations_bounds_how_often_the_model_is_asked() -> None:
    model = script(*[calls((str(turn), "default__add", {"a": turn})) for turn in range(3)])
    async with conversation("go", model=model, tools=[add], max_iterations=2) as runner:
        last = await runner.until_done()
    assert len(model.asked) == 2
    assert last["tool_call_id"] == "1"
    assert [entry["error_type"] for entry in runner.state.tool_results] == [None, "limit"]
    assert (runner.state.error or {})["type"] == "max_turns"


@pytest.mark.parametrize(("given", "asked"), [(None, 5), (3, 3)])
async def test_a12_max_iterations_stands_over_the_limits(given: int | None, asked: int) -> None:
    model = script(*[calls((str(turn), "default__add", {"a": turn})) for turn in range(9)])
    limits = Limits(max_turns=5)
    async with conversation("go", model=model, tools=[add], max_iterations=given, limits=limits) as runner:
        await runner.until_done()
    assert len(model.asked) == asked


async def test_a12_no_iterations_at_all_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 1; got 0"):
        async with conversation("go", model=script(), max_iterations=0):
            pass


@pytest.mark.parametrize("twin", [add, Tool("add", parameters={"type": "object", "properties": {"x": {}}})])
async def test_a17_two_tools_of_one_name_are_refused(twin: Any) -> None:
    def add(other: int) -> int:
        return other

    with pytest.raises(ToolsInvalid, match="several tools are named 'default::add'"):
        async with conversation("go", model=script(), tools=[twin], catalogue=[add]):
            pass


async def test_a_function_that_can_be_no_tool_is_named() -> None:
    def positional(x: int, /) -> int:
        return x

    with pytest.raises(InvalidTool, match="positional"):
        async with conversation("go", model=script(), tools=[positional]):
            pass


class Closing:
    """Something that a tool holds open."""

    def __init__(self, name: str, log: list[str], *, fails: bool = False) -> None:
        self.name, self.log, self.fails = name, log, fails

    def close(self) -> None:
        self.log.append(self.name)
        if self.fails:
            raise OSError("already gone")


class ClosingLater(Closing):
    """The same, awaited; its plain `close` is not for us."""

    async def aclose(self) -> None:
        await asyncio.sleep(0)
        super().close()

    def close(self) -> None:
        raise AssertionError


async def ended_by(end: Callable[[Any], Any], log: list[str]) -> list[Any]:
    things = [Closing("first", log), Closing("broken", log, fails=True), ClosingLater("last", log)]
    with structlog.testing.capture_logs() as logged:
        async with conversation(
            "go",
            model=script(calls(("c", "default__count", {})), ModelUnavailable("down")),
            tools=[count],
            closing=things,
        ) as runner:
            await end(runner)
    return [(entry["event"], entry["cause"]) for entry in logged]


async def fail(runner: Any) -> None:
    with pytest.raises(ModelUnavailable):
        await runner.until_done()


async def stop(runner: Any) -> None:
    async for _ in runner:
        break


async def leave(_runner: Any) -> None:
    return


@pytest.mark.parametrize("end", [fail, stop, leave])
async def test_a19_what_tools_hold_is_closed_once_however_it_ends_and_trouble_is_logged(end: Any) -> None:
    log: list[str] = []
    assert await ended_by(end, log) == [("a tool could not be closed", "OSError: already gone")]
    assert log == ["last", "broken", "first"]


async def test_a19_what_tools_hold_is_closed_when_the_caller_raises_and_when_it_never_began() -> None:
    log: list[str] = []
    with pytest.raises(ZeroDivisionError):
        async with conversation("go", model=script(), closing=[Closing("x", log)]):
            raise ZeroDivisionError
    with pytest.raises(ValueError, match="at least 1"):
        async with conversation("go", model=script(), closing=[Closing("y", log)], max_iterations=0):
            pass
    assert log == ["x", "y"]


async def test_functions_share_a_scratch_that_is_the_sessions_alone() -> None:
    for _ in range(2):
        model = script(calls(("a", "default__count", {})), calls(("b", "default__count", {})), assistant("done"))
        async with conversation("go", model=model, tools=[count]) as runner:
            await runner.until_done()
        assert [entry["result"] for entry in runner.state.tool_results] == [1, 2]


async def test_a_tool_that_nobody_here_answers_is_answered_from_outside() -> None:
    batch = calls(("a", "default__add", {"a": 1}), ("q", "people__ask", {"what": "?"}))
    async with conversation("go", model=script(batch), tools=[add, ASK]) as runner:
        await runner.until_done()
        assert [call.qualified_name for call in runner.pending_calls()] == ["people::ask"]
    state = State.from_json(runner.state.to_json())
    async with conversation(model=script(assistant("done")), tools=[add, ASK], state=state) as again:
        again.answer([ToolResult("q", "people::ask", "yes")])
        await again.until_done()
    assert [message["content"] for message in state.messages[2:]] == ["2", "yes", "done"]


def engine_of(**namespaces: Tool) -> LocalEngine:
    toolsets = [Toolset(namespace, "mine", (tool,)) for namespace, tool in namespaces.items()]
    functions = {
        tool.qualified_name: bound(lambda what: what.upper(), tool, said="upper") for tool in namespaces.values()
    }
    return LocalEngine(toolsets, functions, inline=True)


async def test_an_engine_of_the_callers_answers_its_own_tools_beside_functions() -> None:
    engine = engine_of(people=ASK)
    batch = calls(("q", "people__ask", {"what": "x"}), ("a", "default__add", {"a": 1}))
    async with conversation("go", model=script(batch, assistant("done")), tools=[ASK, add], engine=engine) as runner:
        await runner.until_done()
    assert [entry["result"] for entry in runner.state.tool_results] == ["X", 2]
    assert [entry["metadata"]["debug"]["engine"] for entry in runner.state.tool_results] == ["mine", "functions"]
    async with conversation(
        "go", model=script(calls(("q", *batch_of("people__ask"))), assistant("x")), tools=[ASK], engine=engine
    ) as alone:
        await alone.until_done()
    assert alone.state.tool_results[0]["result"] == "X"
    await engine.close()


def batch_of(name: str) -> tuple[str, dict[str, Any]]:
    return name, {"what": "x"}


async def test_a_namespace_that_functions_and_the_engine_share_is_refused() -> None:
    engine = engine_of(default=Tool("ask", parameters=ASK.parameters))
    with pytest.raises(ToolsInvalid, match="both have the namespace 'default'"):
        async with conversation("go", model=script(), tools=[add], engine=engine):
            pass
    await engine.close()


async def test_a16_a_function_of_the_catalogue_is_offered_when_it_is_added() -> None:
    model = script(calls(("a", "default__add", {"a": 1})), calls(("b", "default__add", {"a": 1})), assistant("done"))
    async with conversation("go", model=model, tools=[count], catalogue=[add]) as runner:
        async for message in runner:
            if message.get("tool_call_id") == "a":
                runner.add_tools("add")
    assert [entry["error_type"] for entry in runner.state.tool_results] == ["unknown_tool", None]


async def test_a_model_block_is_opened_and_closed() -> None:
    block = {"provider": "offline", "offline": {"turns": 2}}
    async with conversation("Add 1 and 2.", model=block, tools=[add]) as runner:
        await runner.until_done()
    assert (runner.state.status, runner.state.turns) == ("completed", 2)


async def test_a_declared_tool_keeps_its_name_and_takes_control() -> None:
    @tool(name="hand over", takes_control=True)
    def hand(topic: str) -> str:
        return f"All about {topic}."

    model = script(calls(("h", "default__hand_over", {"topic": "Oslo"})))
    async with conversation("go", model=model, tools=[hand]) as runner:
        last = await runner.until_done()
    assert (last["content"], runner.state.status) == ("All about Oslo.", "completed")


class Watched(LocalEngine):
    """Notes the sessions that begin and end, and what they begin with."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.begun: list[Any] = []
        self.ended: list[str] = []

    async def setup(self, session_id: str, **options: Any) -> None:
        self.begun.append(options["initial_state"]["history"])
        await super().setup(session_id, **options)

    async def teardown(self, session_id: str, **options: Any) -> None:
        self.ended.append(session_id)
        await super().teardown(session_id, **options)


async def test_a19_the_session_begins_with_what_was_called_before_and_is_torn_down() -> None:
    function = bound(lambda what: what.upper(), ASK, said="upper")
    engine = Watched([Toolset("people", "mine", (ASK,))], {"people::ask": function}, inline=True)
    asked = calls(("q", "people__ask", {"what": "x"}))
    async with conversation("go", model=script(asked, assistant("x")), tools=[ASK], engine=engine) as runner:
        await runner.until_done()
    state = State.from_json(runner.state.to_json())
    async with conversation(model=script(), tools=[ASK], engine=engine, state=state):
        assert len(engine.ended) == 1
    assert [len(history) for history in engine.begun] == [0, 1]
    assert engine.begun[1][0]["call"] == {"name": "people::ask", "arguments": {"what": "x"}, "id": "q"}
    assert len(engine.ended) == 2
    await engine.close()


async def test_a19_threads_and_the_model_of_a_block_are_gone_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    class Noting(ScriptedModel):
        async def open(self) -> None:
            seen.append("opened")

        async def close(self) -> None:
            seen.append("closed")

    lines: list[Line] = [calls(("a", "default__add", {"a": 1})), assistant("done")]
    monkeypatch.setattr(library, "build_model", lambda _: Noting(lines))
    before = set(threading.enumerate())
    async with conversation("go", model={"provider": "offline"}, tools=[add]) as runner:
        await runner.until_done()
        (own,) = {thread for thread in threading.enumerate() if thread.name.startswith("local-tool")} - before
        assert seen == ["opened"]
    assert seen == ["opened", "closed"]
    own.join(timeout=10)  # it was told to end, and ends by itself
    assert not own.is_alive()
