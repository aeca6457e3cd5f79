"""A session that begins with another one's calls, of whose scratch nobody knows: local functions make it again."""

from collections.abc import Iterator
from typing import Any

import pytest

from engines.configuration import ToolsConfiguration
from engines.engine import ToolEngine
from engines.errors import ToolFailed
from engines.loading import load_registry
from engines.tool import ErrorType, ToolCall, ToolResult
from engines.wiring import build_engine
from tests.support import notebook_functions
from tests.unit.engines.stage import no_speak

TEXT = {"type": "object", "properties": {"text": {"type": "string"}, "pages": {"type": "integer", "default": 2}}}


@pytest.fixture(autouse=True)
def _nothing_ran() -> Iterator[None]:
    notebook_functions.RUNS.clear()
    yield
    notebook_functions.RUNS.clear()


def build(**settings: Any) -> ToolEngine:
    tools: list[dict[str, Any]] = [
        {"name": "note", "parameters": TEXT},
        {"name": "read"},
        {"name": "plain", "parameters": TEXT},
    ]
    tools[2]["parameters"] = {"type": "object", "properties": {"text": {"type": "string"}}}
    configuration = ToolsConfiguration.model_validate(
        {
            "registry": [{"type": "inline", "namespace": "n", "engine": "code", "tools": tools}],
            "engines": {"code": {"type": "local", "module": "tests.support.notebook_functions", **settings}},
        }
    )
    registry = load_registry(configuration, folder=None, environment={})  # type: ignore[arg-type]  # No file is read.
    return build_engine(configuration, registry, speak_for=no_speak)


def entry(name: str, result: ToolResult | None = None, **arguments: Any) -> dict[str, Any]:
    call = ToolCall(name, "n", arguments, "c")
    return {"call": call.to_dict(), "result": (result or ToolResult("c", f"n::{name}", "fine")).to_dict()}


def failed(error_type: ErrorType, **metadata: Any) -> ToolResult:
    return ToolResult("c", "n::note", error="no", error_type=error_type, metadata=metadata)


async def notes(engine: ToolEngine, **state: Any) -> Any:
    await engine.setup("s", initial_state=state, seed=7)
    (result,) = await engine.execute("s", [ToolCall("read", "n", {}, "r")])
    await engine.teardown("s")
    return result.result


async def test_calls_that_may_have_kept_something_run_again_in_order() -> None:
    history = [entry("note", text="a", pages=1), entry("plain", text="p"), entry("note", text="b", pages=1)]
    assert await notes(build(), history=history) == ["a", "b"]
    assert notebook_functions.RUNS == ["a", "b"], "a function without a context kept nothing"


async def test_a_call_made_again_has_the_defaults_of_its_schema() -> None:
    assert await notes(build(), history=[entry("note", text="a")]) == ["a", "a"]


async def test_the_modules_setup_comes_first() -> None:
    assert await notes(build(setup="begin"), history=[entry("note", text="a", pages=1)]) == ["cover", "a"]


async def test_a_scratch_that_is_known_is_taken_as_it_is() -> None:
    history = [entry("note", text="a")]
    assert await notes(build(), history=history, scratch={"code": {"n": {"notes": ["kept"]}}}) == ["kept"]
    assert await notes(build(), history=history, scratch={}) == []
    assert notebook_functions.RUNS == []


@pytest.mark.parametrize(
    "result",
    [
        failed(ErrorType.validation),
        failed(ErrorType.unknown_tool),
        failed(ErrorType.network, injected="network_error"),
        failed(ErrorType.permission, denied=True),
        ToolResult("c", "n::note", "fine", metadata={"simulated_by": "lm"}),
        ToolResult("c", "n::note", "fine", metadata={"cached": True}),
        ToolResult("c", "n::note", "fine", metadata={"external": True}),
    ],
)
async def test_calls_that_did_not_reach_their_function_do_not_now(result: ToolResult) -> None:
    assert await notes(build(), history=[entry("note", result, text="a")]) == []


async def test_a_partial_result_was_a_whole_call() -> None:
    partial = ToolResult("c", "n::note", "fi", metadata={"injected": "partial_result"})
    assert await notes(build(), history=[entry("note", partial, text="a", pages=1)]) == ["a"]


async def test_a_call_that_failed_may_fail_again() -> None:
    history = [entry("note", failed(ErrorType.execution), text="fail"), entry("note", text="b", pages=1)]
    assert await notes(build(), history=history) == ["b"]


async def test_a_call_that_did_not_fail_and_does_so_now_leaves_no_session() -> None:
    engine = build()
    with pytest.raises(ToolFailed, match=r"n::note cannot be run again for the turns that are kept: .*fail: now"):
        await engine.setup("s", initial_state={"history": [entry("note", text="fail: now")]})
    assert await engine.get_session_state("s") is None


async def test_the_history_holds_each_call_once() -> None:
    engine, history = build(), [entry("note", text="a", pages=1)]
    await engine.setup("s", initial_state={"history": history}, seed=7)
    state = await engine.get_session_state("s")
    await engine.teardown("s")
    assert state is not None
    assert state["history"] == history
    assert state["scratch"] == {"code": {"n": {"notes": ["a"]}}}
