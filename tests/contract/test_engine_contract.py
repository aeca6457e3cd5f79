"""What every engine keeps to, whatever answers its calls: run over local, lm, mcp, recipe, rest, search and multi."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest

from engines.calling.faults import ErrorCategory
from engines.converse import Brief, Conversed
from engines.engine import ToolEngine
from engines.errors import SessionStateInvalid, ToolFailed, TurnAborted
from engines.kind_settings import EngineParts
from engines.lm.engine import LMToolEngine
from engines.local.engine import LocalEngine
from engines.mcp.engine import McpToolEngine
from engines.multi import MultiToolEngine
from engines.recipes.engine import RecipeToolEngine
from engines.recipes.sub_agent import SUB_AGENT, SubAgent
from engines.registry import ToolRegistry
from engines.rest.engine import RestToolEngine
from engines.search.corpus import Corpus, CorpusSearcher
from engines.search.documents import Document
from engines.search.engine import SearchEngine
from engines.search.searching import Query, SearchSettings
from engines.session import Session
from engines.tool import ErrorType, Tool, ToolCall
from engines.toolset import Toolset
from tests.support.http_backend import http_backend
from tests.unit.engines.stage import Stage, no_speak, staged_answer, staged_speak, toolset

STAGE_MODULE = "tests.unit.engines.stage"
Build = Callable[..., ToolEngine]


@dataclass
class Subject:
    """An engine under test, and how to make another like it (a second worker)."""

    stage: Stage
    build: Build
    engine: ToolEngine

    async def setup(self, session_id: str = "s", engine: ToolEngine | None = None, **more: Any) -> None:
        await (engine or self.engine).setup(session_id, auxdata={"stage": self.stage}, **more)


def local_engine(stage: Stage, toolsets: tuple[Toolset, ...], faults: list[dict[str, Any]]) -> ToolEngine:
    settings = {"type": "local", "module": STAGE_MODULE, "error_categories": faults}
    return LocalEngine.from_parts(parts(settings, toolsets))


def lm_engine(stage: Stage, toolsets: tuple[Toolset, ...], faults: list[dict[str, Any]]) -> ToolEngine:
    return LMToolEngine(toolsets, staged_speak(stage), error_categories=[ErrorCategory(**each) for each in faults])


def mcp_engine(stage: Stage, toolsets: tuple[Toolset, ...], faults: list[dict[str, Any]]) -> ToolEngine:
    """Asks the stage's server over streamable HTTP; its tools say that they change nothing."""
    hints = {"annotations": {"readOnlyHint": True}}
    asking = [
        replace(toolset, tools=tuple(replace(tool, metadata={**tool.metadata, **hints}) for tool in toolset.tools))
        for toolset in toolsets
    ]
    settings = {"type": "mcp", "url": stage.url, "max_in_flight": 400, "error_categories": faults}
    return McpToolEngine.from_parts(parts(settings, tuple(asking)))


def rest_engine(stage: Stage, toolsets: tuple[Toolset, ...], faults: list[dict[str, Any]]) -> ToolEngine:
    """Asks the stage's server, and says which session asks."""
    asking = [replace(toolset, tools=tuple(map(with_operation, toolset.tools))) for toolset in toolsets]
    settings = {
        "type": "rest",
        "url": stage.url,
        "max_connections": 400,
        "error_categories": faults,
        "sessions": {
            toolset.namespace: {"send": {"header": {"X-Session": "{{ session_id }}"}}} for toolset in toolsets
        },
    }
    return RestToolEngine.from_parts(parts(settings, tuple(asking)))


def with_operation(tool: Tool) -> Tool:
    return replace(tool, metadata={**tool.metadata, "rest_method": "GET", "rest_path": f"/{tool.name}"})


class StagedSearcher(CorpusSearcher):
    """Searches the stage: its one document is what the tool of that name would say."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(lambda: Corpus.of([]))
        self._play = staged_speak(stage)._answer

    async def search(self, query: Query) -> list[Document]:
        said = await self._play(query.arguments["tool"], dict(query.arguments))
        return [Document("1", said["text"])]


class StagedSearch(SearchEngine):
    """Gives the text of the one document, as the stage's tools do."""

    async def _call(self, session: Session, call: ToolCall, tool: Tool) -> Any:
        told = {**call.arguments, "tool": call.name, "session_id": session.id}
        (document,) = await super()._call(session, replace(call, arguments=told), tool)
        return {"text": document["text"]}


def search_engine(stage: Stage, toolsets: tuple[Toolset, ...], faults: list[dict[str, Any]]) -> ToolEngine:
    settings = SearchSettings(type="search/in_memory")
    return StagedSearch(
        toolsets, StagedSearcher(stage), settings, error_categories=[ErrorCategory(**each) for each in faults]
    )


class StagedConverse:
    """Holds no conversation: its last word is what the stage's tool would say."""

    def __init__(self, stage: Stage) -> None:
        self._play = staged_speak(stage)._answer

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def __call__(self, brief: Brief) -> Conversed:
        session_id = brief.session_id.rpartition(".")[0]
        try:
            said = await self._play(brief.prompt, {**brief.arguments, "session_id": session_id})
        except ToolFailed as failure:
            return Conversed(error=failure.message, error_type=failure.error_type)
        return Conversed(json.dumps(said))


def recipe_engine(stage: Stage, toolsets: tuple[Toolset, ...], faults: list[dict[str, Any]]) -> ToolEngine:
    """A call is a conversation that ends with what the stage says; its tools say that they change nothing."""
    asking = tuple(replace(toolset, tools=tuple(map(with_recipe, toolset.tools))) for toolset in toolsets)
    settings = {"type": "recipe", "error_categories": faults}
    held = StagedConverse(stage)
    return RecipeToolEngine.from_parts(replace(parts(settings, asking), converse_for=lambda _recipe: held))


def with_recipe(tool: Tool) -> Tool:
    agent = SubAgent(recipe={}, prompt=tool.name).model_dump()
    metadata = {**tool.metadata, SUB_AGENT: agent, "read_only": True}
    return replace(tool, output_parameters={"type": "object"}, metadata=metadata)


def multi_engine(stage: Stage, toolsets: tuple[Toolset, ...], faults: list[dict[str, Any]]) -> ToolEngine:
    """The namespace `w` on a local engine, a second one on a model, as in a recipe with both."""
    engines = {"code": local_engine(stage, toolsets, faults), "model": lm_engine(stage, (toolset("other"),), faults)}
    return MultiToolEngine(engines, {"w": "code", "other": "model"})


def parts(settings: dict[str, Any], toolsets: tuple[Toolset, ...]) -> EngineParts:
    return EngineParts(
        "engine",
        settings,
        toolsets,
        ToolRegistry(toolsets),
        no_speak,
        lambda _name, _at: pytest.fail("nothing routes here"),
    )


@pytest.fixture(params=[local_engine, lm_engine, mcp_engine, recipe_engine, rest_engine, search_engine, multi_engine])
async def subject(request: pytest.FixtureRequest) -> AsyncIterator[Subject]:
    stage = Stage()

    def build(*, faults: list[dict[str, Any]] | None = None, **defaults: Any) -> ToolEngine:
        engine: ToolEngine = request.param(stage, (toolset("w", **defaults),), faults or [])
        return engine

    async with http_backend(partial(staged_answer, stage)) as backend:
        stage.url = backend.url
        engine = build()
        await engine.open()
        yield Subject(stage, build, engine)
        await engine.close()


def echo(text: str, call_id: str | None = "c") -> ToolCall:
    return ToolCall("echo", "w", {"text": text}, call_id)


def waiting(text: str) -> ToolCall:
    return ToolCall("wait", "w", {"text": text}, text)


async def state_of(engine: ToolEngine, session_id: str = "s") -> dict[str, Any]:
    state = await engine.get_session_state(session_id)
    assert state is not None
    return state


async def texts_of(engine: ToolEngine, session_id: str = "s") -> list[str]:
    return [entry["call"]["arguments"]["text"] for entry in (await state_of(engine, session_id))["history"]]


# Sessions


async def test_d7_a_second_setup_of_an_active_session_is_refused(subject: Subject) -> None:
    await subject.setup()
    with pytest.raises(ValueError, match=r"Session 's' is already active\. Call teardown\(\) before re-registering\."):
        await subject.setup()


async def test_d7_of_fifty_setups_at_once_one_succeeds(subject: Subject) -> None:
    outcomes = await asyncio.gather(*(subject.setup() for _ in range(50)), return_exceptions=True)
    assert outcomes.count(None) == 1
    assert all(isinstance(outcome, ValueError) for outcome in outcomes if outcome is not None)


async def test_d7_a_session_may_be_set_up_again_after_its_teardown(subject: Subject) -> None:
    await subject.setup()
    await subject.engine.execute("s", [echo("before")])
    await subject.engine.teardown("s")
    await subject.setup()
    assert (await state_of(subject.engine))["history"] == []


async def test_d8_teardown_may_come_twice_and_for_an_unknown_session(subject: Subject) -> None:
    await subject.setup()
    for session_id in ("s", "s", "never seen"):
        await subject.engine.teardown(session_id)


@pytest.mark.parametrize("method", ["execute", "simulate"])
async def test_d9_calls_before_setup_and_after_teardown_are_refused(subject: Subject, method: str) -> None:
    run = getattr(subject.engine, method)
    with pytest.raises(KeyError, match=r"Session 's' is not active\. Call setup\(\) before execute\(\)\."):
        await run("s", [echo("early")])
    await subject.setup()
    await subject.engine.teardown("s")
    with pytest.raises(KeyError, match="not active"):
        await run("s", [echo("late")])
    assert subject.stage.runs == []


async def test_d9_a_call_that_waited_while_its_session_was_torn_down_is_refused(subject: Subject) -> None:
    await subject.setup()
    running = asyncio.create_task(subject.engine.execute("s", [waiting("running")]))
    await subject.stage.until_waiting(1)
    queued = asyncio.create_task(subject.engine.execute("s", [echo("queued")]))
    ended = asyncio.create_task(subject.engine.teardown("s"))
    await asyncio.sleep(0)
    subject.stage.gate.set()
    assert not (await running)[0].is_error
    with pytest.raises(KeyError):
        await queued
    await ended


async def test_d10_the_state_is_a_copy_and_none_for_an_unknown_session(subject: Subject) -> None:
    assert await subject.engine.get_session_state("unknown") is None
    await subject.setup()
    await subject.engine.execute("s", [echo("one")])
    state = await state_of(subject.engine)
    state["history"][0]["call"]["arguments"]["text"] = "changed"
    state["history"].clear()
    assert await texts_of(subject.engine) == ["one"]


async def test_d10_the_state_waits_for_a_running_call(subject: Subject) -> None:
    await subject.setup()
    running = asyncio.create_task(subject.engine.execute("s", [waiting("one")]))
    await subject.stage.until_waiting(1)
    asked = asyncio.create_task(texts_of(subject.engine))
    await asyncio.sleep(0)
    assert not asked.done()
    subject.stage.gate.set()
    assert await asked == ["one"]
    await running


async def test_d11_a_fork_goes_its_own_way(subject: Subject) -> None:
    await subject.setup("parent")
    await subject.engine.execute("parent", [echo("common")])
    state = await state_of(subject.engine, "parent")
    await subject.setup("fork", initial_state=state)
    await subject.engine.execute("fork", [echo("fork only")])
    assert await texts_of(subject.engine, "fork") == ["common", "fork only"]
    assert await texts_of(subject.engine, "parent") == ["common"]


async def test_d12_a_job_that_raises_leaves_no_session(subject: Subject) -> None:
    await subject.setup()
    try:
        with pytest.raises(ZeroDivisionError):
            await divided_by_zero(subject.engine)
    finally:
        await subject.engine.teardown("s")
    assert await subject.engine.get_session_state("s") is None
    await subject.setup()


async def divided_by_zero(engine: ToolEngine) -> None:
    await engine.execute("s", [echo("one")])
    raise ZeroDivisionError


async def test_d13_calls_of_one_session_wait_for_each_other_and_sessions_do_not(subject: Subject) -> None:
    for session_id in ("a", "b"):
        await subject.setup(session_id)
    batches = [
        asyncio.create_task(subject.engine.execute(session_id, [waiting(f"{session_id}{number}")]))
        for session_id in ("a", "b")
        for number in (1, 2)
    ]
    await subject.stage.until_waiting(2)  # One of each session, at the same time ...
    for _ in range(20):
        await asyncio.sleep(0)
    assert subject.stage.waiting == 2  # ... and never two of one.
    subject.stage.gate.set()
    await asyncio.gather(*batches)
    for session_id in ("a", "b"):
        assert await texts_of(subject.engine, session_id) == [f"{session_id}1", f"{session_id}2"]


async def test_hundreds_of_sessions_run_at_once(subject: Subject) -> None:
    ids = [f"s{number}" for number in range(300)]
    for session_id in ids:
        await subject.setup(session_id)
    batches = [asyncio.create_task(subject.engine.execute(session_id, [waiting(session_id)])) for session_id in ids]
    await subject.stage.until_waiting(300)
    subject.stage.gate.set()
    for session_id, (result,) in zip(ids, await asyncio.gather(*batches), strict=True):
        assert result.result == {"text": session_id}


# Calls


async def test_d14_an_execute_beside_a_simulate_is_not_lost(subject: Subject) -> None:
    await subject.setup()
    executed = asyncio.create_task(subject.engine.execute("s", [waiting("executed")]))
    await subject.stage.until_waiting(1)
    simulated = asyncio.create_task(subject.engine.simulate("s", [echo("simulated")]))
    await asyncio.sleep(0)
    subject.stage.gate.set()
    await asyncio.gather(executed, simulated)
    assert await texts_of(subject.engine) == ["executed"]


async def test_d15_simulate_leaves_the_state_as_it_was(subject: Subject) -> None:
    await subject.setup()
    await subject.engine.execute("s", [echo("before"), ToolCall("add", "w", {"text": "kept"})])
    before = await state_of(subject.engine)
    results = await subject.engine.simulate("s", [ToolCall("add", "w", {"text": text}) for text in ("x", "y", "z")])
    assert [result.is_error for result in results] == [False, False, False]
    assert await state_of(subject.engine) == before


async def test_d16_simulate_comes_to_what_execute_would(subject: Subject) -> None:
    await subject.setup()
    batch = [ToolCall("add", "w", {"text": "x"}, "1"), ToolCall("add", "w", {"text": "y"}, "2")]
    simulated = await subject.engine.simulate("s", batch)
    assert simulated == await subject.engine.execute("s", batch)


async def test_d17_every_call_is_in_the_history(subject: Subject) -> None:
    await subject.setup()
    (result,) = await subject.engine.execute("s", [echo("one", "id 1")])
    (entry,) = (await state_of(subject.engine))["history"]
    assert entry == {"call": echo("one", "id 1").to_dict(), "result": result.to_dict()}


async def test_d18_there_is_one_result_per_call_in_call_order(subject: Subject) -> None:
    await subject.setup()
    calls = [echo("a", "1"), ToolCall("no such", "w", {}, "2"), echo("b", "3"), echo("c", "3")]
    results = await subject.engine.execute("s", calls)
    assert [result.call_id for result in results] == ["1", "2", "3", "3"]
    assert [result.name for result in results] == ["w::echo", "w::no such", "w::echo", "w::echo"]


async def test_d4_results_of_calls_without_an_id_come_back_by_position(subject: Subject) -> None:
    await subject.setup()
    results = await subject.engine.execute("s", [echo("a", None), echo("b", None)])
    assert [(result.call_id, result.result) for result in results] == [(None, {"text": "a"}), (None, {"text": "b"})]


async def test_d28_a_failed_call_is_an_error_result_and_recorded(subject: Subject) -> None:
    await subject.setup()
    (result,) = await subject.engine.execute("s", [ToolCall("fail", "w", {"text": "reach it"}, "c")])
    assert str(result.error).endswith("ConnectionError: cannot reach it")
    assert (result.error_type, result.result) == (ErrorType.network, None)
    assert (await state_of(subject.engine))["history"][0]["result"]["error"] == result.error


@pytest.mark.parametrize("name", ["w::nothing", "elsewhere::echo", "echo"])
async def test_d29_an_unknown_tool_is_an_error_result_and_recorded(subject: Subject, name: str) -> None:
    await subject.setup()
    call = ToolCall.parse(name, {"text": "x"}, "c")
    (result,) = await subject.engine.execute("s", [call])
    assert result.error_type is ErrorType.unknown_tool
    assert result.error is not None
    assert result.error.startswith(f"Unknown tool '{call.qualified_name}'")
    assert len((await state_of(subject.engine))["history"]) == 1


async def test_a_session_answers_for_the_namespaces_of_its_job_only(subject: Subject) -> None:
    await subject.setup("mine", namespaces={"w"})
    await subject.setup("not mine", namespaces={"elsewhere"})
    (answered,) = await subject.engine.execute("mine", [echo("x")])
    (unknown,) = await subject.engine.execute("not mine", [echo("y")])
    assert (answered.error_type, unknown.error_type) == (None, ErrorType.unknown_tool)
    assert [text for _, text in subject.stage.runs] == ["x"]


async def test_e3_arguments_that_break_the_schema_never_reach_the_tool(subject: Subject) -> None:
    await subject.setup()
    wrong = [ToolCall("echo", "w", {"text": 7}, "1"), ToolCall("echo", "w", {}, "2")]
    results = await subject.engine.execute("s", wrong)
    assert [result.error_type for result in results] == [ErrorType.validation, ErrorType.validation]
    assert results[0].error == 'invalid arguments: text: 7 is not of type "string"'
    assert results[1].error == 'invalid arguments: "text" is a required property'
    assert subject.stage.runs == []
    assert len((await state_of(subject.engine))["history"]) == 2


async def test_a_call_past_its_deadline_is_a_timeout_result(subject: Subject) -> None:
    engine = subject.build(timeout_seconds=0.01)
    await subject.setup(engine=engine)
    (result,) = await engine.execute("s", [waiting("for ever")])
    assert (result.error_type, result.error) == (ErrorType.timeout, "no answer within 0.01 seconds")
    subject.stage.gate.set()
    assert not (await engine.execute("s", [echo("next")]))[0].is_error
    await engine.close()


async def test_a_cancelled_call_raises_and_leaves_the_session_usable(subject: Subject) -> None:
    await subject.setup()
    running = asyncio.create_task(subject.engine.execute("s", [echo("done"), waiting("cancelled")]))
    await subject.stage.until_waiting(1)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not (await subject.engine.execute("s", [echo("next")]))[0].is_error
    assert await texts_of(subject.engine) == ["done", "next"]


async def test_s14_a_result_over_max_result_chars_is_cut_and_says_so(subject: Subject) -> None:
    engine = subject.build(max_result_chars=200)
    await subject.setup(engine=engine)
    (result,) = await engine.execute("s", [ToolCall("long", "w", {})])
    assert isinstance(result.result, str)
    assert len(result.result) <= 200
    assert "characters left out" in result.result
    assert result.metadata["truncated"] is True
    await engine.close()


async def test_e13_on_error_raise_aborts_the_turn_with_the_result(subject: Subject) -> None:
    engine = subject.build(on_error="raise")
    await subject.setup(engine=engine)
    calls = [echo("one"), ToolCall("fail", "w", {"text": "go on"}, "c2"), echo("never run")]
    with pytest.raises(TurnAborted, match=r"w::fail: (HTTP 503: )?ConnectionError: cannot go on") as aborted:
        await engine.execute("s", calls)
    assert aborted.value.result.call_id == "c2"
    assert [text for _, text in subject.stage.runs] == ["one"]
    await engine.close()


async def test_e13_bad_arguments_and_simulations_never_abort(subject: Subject) -> None:
    engine = subject.build(on_error="raise")
    await subject.setup(engine=engine)
    assert (await engine.execute("s", [ToolCall("echo", "w", {})]))[0].error_type is ErrorType.validation
    assert (await engine.simulate("s", [ToolCall("fail", "w", {"text": "x"})]))[0].error_type is ErrorType.network
    await engine.close()


# Faults on purpose


async def test_d35_certain_faults_always_fire_impossible_ones_never_and_both_are_recorded(subject: Subject) -> None:
    faults = [{"type": "network_error", "probability": 1, "message": "gone"}, {"type": "other", "probability": 0}]
    engine = subject.build(faults=faults, on_error="raise")
    await subject.setup(engine=engine)
    results = await engine.execute("s", [echo("x") for _ in range(20)])
    assert {(result.error, result.error_type) for result in results} == {("gone", ErrorType.network)}
    assert all(result.metadata == {"injected": "network_error"} for result in results)
    assert subject.stage.runs == []
    assert len((await state_of(engine))["history"]) == 20
    await engine.close()


async def test_d36_the_same_job_draws_the_same_faults_on_any_worker(subject: Subject) -> None:
    faults = [{"type": "network_error", "probability": 0.3}, {"type": "unparseable_result", "probability": 0.2}]
    drawn = []
    for seed in (1, 1, 2):
        engine = subject.build(faults=faults)
        await subject.setup(engine=engine, seed=seed)
        results = await engine.execute("s", [echo("x") for _ in range(40)])
        drawn.append([result.metadata.get("injected") for result in results])
        await engine.close()
    assert drawn[0] == drawn[1] != drawn[2]
    assert set(drawn[0]) == {None, "network_error", "unparseable_result"}


async def test_d36_a_job_continued_elsewhere_draws_what_it_would_have_drawn_here(subject: Subject) -> None:
    faults = [{"type": "network_error", "probability": 0.5}]
    engine, second = subject.build(faults=faults), subject.build(faults=faults)
    await subject.setup(engine=engine, seed=5)
    whole = await engine.execute("s", [echo("x"), ToolCall("echo", "w", {}), *[echo("x") for _ in range(18)]])
    await engine.teardown("s")
    await subject.setup(engine=engine, seed=5)
    begun = await engine.execute("s", [echo("x"), ToolCall("echo", "w", {}), *[echo("x") for _ in range(8)]])
    await subject.setup(engine=second, seed=5, initial_state=await state_of(engine))
    continued = await second.execute("s", [echo("x") for _ in range(10)])
    assert [result.metadata.get("injected") for result in begun + continued] == [
        result.metadata.get("injected") for result in whole
    ]
    await engine.close()
    await second.close()


async def test_a_partial_result_is_the_tools_own_answer_cut_short(subject: Subject) -> None:
    engine = subject.build(faults=[{"type": "partial_result", "probability": 1}])
    await subject.setup(engine=engine)
    (result,) = await engine.execute("s", [echo("whole")])
    assert result.metadata["injected"] == "partial_result"
    assert result.error is None
    assert [text for _, text in subject.stage.runs] == ["whole"]
    assert result.result == {"text": "who"}
    (failed,) = await engine.execute("s", [ToolCall("fail", "w", {"text": "x"})])
    assert (failed.error_type, "injected" in failed.metadata) == (ErrorType.network, False)
    await engine.close()


async def test_a_stale_result_is_the_first_answer_and_asks_nobody(subject: Subject) -> None:
    engine = subject.build(faults=[{"type": "stale_result", "probability": 1}])
    await subject.setup(engine=engine)
    results = await engine.execute("s", [echo("one"), echo("two")])  # Calls of one batch may run side by side.
    results += await engine.execute("s", [echo("one")])
    assert [result.result for result in results] == [{"text": "one"}, {"text": "two"}, {"text": "one"}]
    assert [result.metadata.get("injected") for result in results] == [None, None, "stale_result"]
    second = subject.build(faults=[{"type": "stale_result", "probability": 1}])
    await subject.setup(engine=second, initial_state=await state_of(engine))
    (again,) = await second.execute("s", [echo("two")])
    assert (again.result, again.metadata) == ({"text": "two"}, {"injected": "stale_result"})
    assert sorted(text for _, text in subject.stage.runs) == ["one", "two"]
    await engine.close()
    await second.close()


async def test_d36_an_outage_goes_on_where_the_job_goes_on_and_comes_to_its_end(subject: Subject) -> None:
    faults = [{"type": "outage", "probability": 0.1, "calls": 4}]
    engine, second = subject.build(faults=faults, on_error="raise"), subject.build(faults=faults)
    await subject.setup(engine=engine, seed=3)
    whole = await engine.execute("s", [echo("x") for _ in range(60)])
    await engine.teardown("s")
    down = [result.metadata.get("injected") == "outage" for result in whole]
    assert {result.error for result in whole} == {None, "Service unavailable"}
    assert down.count(True) == 60 - len(subject.stage.runs)
    middle = down.index(True) + 2  # Within the first outage.
    assert down[middle - 2 : middle + 2] == [True] * 4
    await subject.setup(engine=engine, seed=3)
    await engine.execute("s", [echo("x") for _ in range(middle)])
    await subject.setup(engine=second, seed=3, initial_state=await state_of(engine))
    rest = await second.execute("s", [echo("x") for _ in range(60 - middle)])
    assert [result.metadata.get("injected") == "outage" for result in rest] == down[middle:]
    await engine.close()
    await second.close()


async def test_d36_injected_faults_are_never_the_tools_own_failures(subject: Subject) -> None:
    types = ["network_error", "timeout", "rate_limited", "outage", "schema_violation", "unparseable_result", "other"]
    faults = [{"type": type_, "probability": 0.08} for type_ in types]
    engine = subject.build(faults=faults, on_error="raise")
    await subject.setup(engine=engine, seed=1)
    results = await engine.execute("s", [echo("x") for _ in range(250)])
    assert {result.metadata.get("injected") for result in results} == {None, *types}
    assert all("injected" in result.metadata for result in results if result.is_error)
    assert len(subject.stage.runs) == sum("injected" not in result.metadata for result in results)
    await engine.close()


# States


async def test_d64_a_state_continues_on_another_worker(subject: Subject) -> None:
    await subject.setup()
    batch = [ToolCall("add", "w", {"text": text}) for text in ("a", "b")]
    await subject.engine.execute("s", batch)
    state = json.loads(json.dumps(await state_of(subject.engine)))
    second = subject.build()
    await subject.setup(engine=second, initial_state=state)
    assert await state_of(second) == state
    one_more = [ToolCall("add", "w", {"text": "c"})]
    assert await second.execute("s", one_more) == await subject.engine.execute("s", one_more)
    assert await state_of(second) == await state_of(subject.engine)
    await second.close()


async def test_d11_a_fork_of_which_only_the_calls_are_known_comes_to_the_same_state(subject: Subject) -> None:
    await subject.setup()
    batch = [ToolCall("add", "w", {"text": text}) for text in ("a", "b")]
    await subject.engine.execute("s", batch)
    calls = json.loads(json.dumps((await state_of(subject.engine))["history"]))
    second = subject.build()
    await subject.setup(engine=second, initial_state={"history": calls})
    one_more = [ToolCall("add", "w", {"text": "c"})]
    assert await second.execute("s", one_more) == await subject.engine.execute("s", one_more)
    assert await state_of(second) == await state_of(subject.engine)
    await second.close()


async def test_the_scratch_alone_is_the_scratch_of_the_state(subject: Subject) -> None:
    await subject.setup()
    await subject.engine.execute("s", [ToolCall("add", "w", {"text": "a"})])
    scratch = await subject.engine.get_session_scratch("s")
    assert scratch == (await state_of(subject.engine))["scratch"]
    with pytest.raises(KeyError, match="not active"):
        await subject.engine.get_session_scratch("unknown")


@pytest.mark.parametrize("state", [{"histroy": []}, {"scratch": []}, {"history": [{"call": {}}]}])
async def test_a_state_that_is_none_is_refused_and_leaves_no_session(subject: Subject, state: dict[str, Any]) -> None:
    with pytest.raises(SessionStateInvalid):
        await subject.setup(initial_state=state)
    assert await subject.engine.get_session_state("s") is None
