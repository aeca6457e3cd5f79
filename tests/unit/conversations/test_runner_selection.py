"""What the selection decides, seen from the loop: overloads, calls that may not be made, calls that wait."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from conversations.messages import assistant, user
from conversations.policy.limits import Limits
from conversations.runner import ToolRunner
from conversations.selection import Selector
from conversations.state import State
from engines.configuration import ToolsConfiguration
from engines.loading import load_registry
from engines.tool import ToolCall, ToolResult
from engines.wiring import build_engine
from tests.support import counting_tools
from tests.support.scripted_model import Line, calls, script
from tests.unit.engines.stage import no_speak

MODULE = "tests.unit.conversations.weather_overloads"
BY_CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
BY_PLACE = {"type": "object", "properties": {"lat": {"type": "number"}, "lon": {"type": "number", "default": 0}}}
BY_PLACE |= {"required": ["lat"]}


@asynccontextmanager
async def conversation(
    block: ToolsConfiguration, *lines: Line, state: State | None = None
) -> AsyncIterator[ToolRunner]:
    registry = load_registry(block, folder=Path(), environment={})
    engine = build_engine(block, registry, speak_for=no_speak)
    await engine.setup("s")
    if state is None:
        state = State()
        state.append(user("hi"))
    selection = Selector(registry, permissions=block.permissions).select(None)
    yield ToolRunner(model=script(*lines), engine=engine, session_id="s", state=state, tools=selection, limits=Limits())
    await engine.teardown("s")
    await engine.close()


def permitting(**permissions: Any) -> ToolsConfiguration:
    counting_tools.RUNS.clear()
    block = counting_tools.configuration().model_dump(mode="json") | {"permissions": permissions}
    return ToolsConfiguration.model_validate(block)


def results_of(runner: ToolRunner) -> list[tuple[Any, Any]]:
    return [(entry["result"], entry["error_type"]) for entry in runner.state.tool_results]


async def test_d69_d70_a_call_of_an_overloaded_name_reaches_the_overload_that_its_arguments_fit() -> None:
    overloads = [{"name": "get", "parameters": schema} for schema in (BY_CITY, BY_PLACE)]
    block = ToolsConfiguration.model_validate(
        {
            "registry": [{"type": "inline", "namespace": "w", "tools": overloads}],
            "engines": {"code": {"type": "local", "module": MODULE}},
        }
    )
    asked = calls(
        ("a", "w__get", {"city": "Rome"}),
        ("b", "w__get", {"lat": 1}),
        ("c", "w__get", {"lat": 1, "lon": 2}),
        ("d", "w__get", {"city": 7}),
    )
    async with conversation(block, asked, assistant("done")) as runner:
        await runner.until_done()
    assert results_of(runner) == [
        ({"city": "Rome", "overload": ["city"]}, None),
        ({"lat": 1, "lon": 0, "overload": ["lat", "lon"]}, None),
        ({"lat": 1, "lon": 2, "overload": ["lat", "lon"]}, None),
        (None, "validation"),
    ]


async def test_e12_a_denied_call_is_told_to_the_model_and_the_conversation_goes_on() -> None:
    batch = calls(("a", "w__echo", {"text": "x"}), ("b", "w__add", {"a": 1, "b": 2}))
    async with conversation(permitting(deny=["w::echo"]), batch, assistant("done")) as runner:
        await runner.until_done()
    assert results_of(runner) == [(None, "permission"), (3, None)]
    assert runner.state.messages[2]["content"] == "Error: Permission denied: w::echo may not be called."
    assert (runner.state.status, counting_tools.RUNS) == ("completed", [("add", (1, 2))])


async def test_a_call_that_wants_confirmation_pauses_and_is_answered_from_outside() -> None:
    confirm = {"tool": "w::add", "arguments": {"properties": {"a": {"minimum": 100}}}}
    block = permitting(confirm=[confirm, "w::fail"], deny=["w::fail"])
    batch = calls(
        ("a", "w__add", {"a": 100, "b": 2}),
        ("b", "w__add", {"a": 1, "b": 2}),
        ("c", "w__fail", {"reason": "no"}),
        ("d", "w__add", {"a": 200, "b": "x"}),
    )
    async with conversation(block, batch) as runner:
        await runner.until_done()
        assert runner.pending_calls() == [ToolCall("add", "w", {"a": 100, "b": 2}, "a")]
    assert runner.state.status == "awaiting_tool_results"
    assert counting_tools.RUNS == [("add", (1, 2))]
    state = State.from_json(runner.state.to_json())
    async with conversation(block, assistant("done"), state=state) as resumed:
        resumed.answer([ToolResult("a", "w::add", result="approved: 102")])
        await resumed.until_done()
    told = [message["content"] for message in state.messages if message["role"] == "tool"]
    assert (told[:2], resumed.state.status) == (["approved: 102", "3"], "completed")
    assert told[2].startswith("Error: Permission denied")
    assert told[3].startswith("Error: b: ")
    assert counting_tools.RUNS == [("add", (1, 2))]
