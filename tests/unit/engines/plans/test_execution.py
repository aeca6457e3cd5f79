"""Plans carried out on a real engine."""

from collections.abc import AsyncIterator

import pytest

from engines.kind_settings import EngineParts
from engines.local.engine import LocalEngine
from engines.plans.execution import PlanStopped, executed
from engines.plans.validator import ValidPlan, tool_call_validator
from engines.registry import ToolRegistry
from engines.tool import ErrorType, ToolCall
from tests.unit.engines.stage import Stage, no_speak, toolset


@pytest.fixture
async def engine() -> AsyncIterator[LocalEngine]:
    toolsets = (toolset("w"),)
    settings = {"type": "local", "module": "tests.unit.engines.stage"}
    parts = EngineParts("e", settings, toolsets, ToolRegistry(toolsets), no_speak, lambda *_: pytest.fail("no routes"))
    engine = LocalEngine.from_parts(parts)
    await engine.setup("s", auxdata={"stage": Stage()})
    yield engine
    await engine.teardown("s")
    await engine.close()


def plan(*calls: tuple[str, str]) -> tuple[ToolCall, ...]:
    verdict = tool_call_validator(
        [{"name": f"w::{name}", "arguments": {"text": text}} for name, text in calls], toolset("w").tools
    )
    assert isinstance(verdict, ValidPlan)
    return verdict.calls


async def test_d86_a_plan_of_two_steps_puts_the_first_result_into_the_second_call(engine: LocalEngine) -> None:
    done = await executed(plan(("echo", "Oslo"), ("add", "$1.text")), engine, "s")
    assert [(call.arguments, result.result) for call, result in done] == [
        ({"text": "Oslo"}, {"text": "Oslo"}),
        ({"text": "Oslo"}, {"texts": ["Oslo"]}),
    ]


async def test_d86_an_unresolved_reference_stops_the_plan_and_nothing_after_it_runs(engine: LocalEngine) -> None:
    calls = plan(("echo", "Oslo"), ("add", "$1.city"), ("echo", "after"))
    with pytest.raises(PlanStopped, match=r"w::add: '\$1\.city': the result of '\$1' has no 'city' there") as stopped:
        await executed(calls, engine, "s")
    assert [result.result for _, result in stopped.value.done] == [{"text": "Oslo"}]
    state = await engine.get_session_state("s")
    assert state is not None
    assert len(state["history"]) == 1


async def test_d87_a_failed_call_is_kept_and_the_plan_goes_on(engine: LocalEngine) -> None:
    done = await executed(plan(("fail", "now"), ("echo", "after")), engine, "s")
    assert [result.error_type for _, result in done] == [ErrorType.network, None]
    assert done[0][1].error == "ConnectionError: cannot now"


async def test_d87_a_call_that_needs_a_failed_one_stops_the_plan_and_the_error_is_kept(engine: LocalEngine) -> None:
    with pytest.raises(PlanStopped, match=r"the call '\$1' has no result") as stopped:
        await executed(plan(("fail", "now"), ("echo", "$1")), engine, "s")
    assert [result.is_error for _, result in stopped.value.done] == [True]
