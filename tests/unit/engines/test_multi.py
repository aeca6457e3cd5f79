"""The multi engine: routing, one history for all, setup of all or none."""

import asyncio
import json
from typing import Any

import pytest

from engines.calling.effects import Effects
from engines.calling.faults import ErrorCategory
from engines.engine import ToolEngine
from engines.errors import ConfigurationInvalid, SessionStateInvalid, TurnAborted
from engines.history import History
from engines.kind_settings import EngineParts
from engines.lm.engine import LMToolEngine
from engines.multi import MultiToolEngine
from engines.registry import ToolRegistry
from engines.session import Session
from engines.tool import ErrorType, Tool, ToolCall
from engines.toolset import ToolDefaults, Toolset
from tests.unit.engines.stage import ScriptedSpeak, Stage


class Counter(ToolEngine):
    """Counts its calls in the session, and what happens to its sessions."""

    effects = Effects.session

    def __init__(self, *namespaces: str, stage: Stage | None = None, **defaults: Any) -> None:
        toolsets = [
            Toolset(namespace, None, (Tool("count", namespace), Tool("fail", namespace)), ToolDefaults(**defaults))
            for namespace in namespaces
        ]
        super().__init__(toolsets)
        self.log: list[str] = []
        self.stage = stage

    async def open(self) -> None:
        self.log.append("open")

    async def close(self) -> None:
        self.log.append("close")

    async def _call(self, session: Session, call: ToolCall, tool: Tool) -> Any:
        if self.stage is not None:
            await self.stage.wait()
        if tool.name == "fail":
            raise PermissionError(call.call_id)
        session.scratch["count"] = session.scratch.get("count", 0) + 1
        return session.scratch["count"]

    async def _open_session(self, session: Session) -> None:
        self.log.append(f"setup {session.id}")

    async def _close_session(self, session: Session) -> None:
        self.log.append(f"teardown {session.id}")


class Refusing(Counter):
    """Cannot set up a session, and cannot open, when it is told so."""

    async def open(self) -> None:
        raise ConnectionRefusedError

    async def _open_session(self, session: Session) -> None:
        raise ConnectionError

    async def _close_session(self, session: Session) -> None:
        raise ConnectionError


def call(namespace: str, call_id: str = "c", name: str = "count") -> ToolCall:
    return ToolCall(name, namespace, {}, call_id)


async def history_of(engine: ToolEngine) -> list[str]:
    state = await engine.get_session_state("s")
    assert state is not None
    return [entry["call"]["id"] for entry in state["history"]]


async def test_d60_results_of_a_mixed_batch_come_in_call_order() -> None:
    engine = MultiToolEngine({"one": Counter("a", "b"), "two": Counter("c")}, {"a": "one", "b": "one", "c": "two"})
    await engine.setup("s")
    results = await engine.execute("s", [call(namespace, namespace) for namespace in "acbca"])
    assert [(result.name, result.result) for result in results] == [
        ("a::count", 1),
        ("c::count", 1),
        ("b::count", 2),
        ("c::count", 2),
        ("a::count", 3),
    ]
    assert await history_of(engine) == list("acbca")


async def test_d60_one_engine_for_two_namespaces_is_set_up_once() -> None:
    shared = Counter("a", "b")
    engine = MultiToolEngine({"x": shared, "y": shared}, {"a": "x", "b": "y"})
    await engine.open()
    await engine.setup("s")
    await engine.execute("s", [call("a"), call("b")])
    await engine.teardown("s")
    await engine.close()
    assert shared.log == ["open", "setup s", "teardown s", "close"]


async def test_d62_an_unknown_namespace_fails_its_own_call_only() -> None:
    engine = MultiToolEngine({"one": Counter("a")}, {"a": "one"})
    await engine.setup("s")
    good, bad = await engine.execute("s", [call("a", "1"), call("z", "2")])
    assert good.result == 1
    assert (bad.error, bad.error_type) == ("Unknown tool 'z::count'; known namespaces: a", ErrorType.unknown_tool)
    assert await history_of(engine) == ["1", "2"]


async def test_d63_a_setup_that_fails_leaves_no_session_anywhere() -> None:
    good = Counter("a")
    engine = MultiToolEngine({"good": good, "bad": Refusing("b")}, {"a": "good", "b": "bad"})
    with pytest.raises(ConnectionError):
        await engine.setup("s")
    assert good.log == ["setup s", "teardown s"]
    assert await engine.get_session_state("s") is None
    assert await good.get_session_state("s") is None


async def test_e5_every_engine_is_torn_down_also_after_one_that_raises() -> None:
    class RaisesAtTheEnd(Counter):
        async def _close_session(self, session: Session) -> None:
            raise ConnectionError

    first, last = Counter("a"), Counter("c")
    engine = MultiToolEngine(
        {"first": first, "bad": RaisesAtTheEnd("b"), "last": last}, {"a": "first", "b": "bad", "c": "last"}
    )
    await engine.setup("s")
    with pytest.raises(ConnectionError):
        await engine.teardown("s")
    assert first.log == last.log == ["setup s", "teardown s"]
    await engine.teardown("s")


async def test_e22_when_one_engine_cannot_open_those_before_it_are_closed() -> None:
    good = Counter("a")
    with pytest.raises(ConnectionRefusedError):
        await MultiToolEngine({"good": good, "bad": Refusing("b")}, {"a": "good", "b": "bad"}).open()
    assert good.log == ["open", "close"]


async def test_d64_a_state_holds_each_engines_scratch_by_name_and_is_restored() -> None:
    def build() -> MultiToolEngine:
        return MultiToolEngine({"one": Counter("a"), "two": Counter("b")}, {"a": "one", "b": "two"})

    first, second = build(), build()
    await first.setup("s")
    await first.execute("s", [call("a"), call("a"), call("b")])
    state = await first.get_session_state("s")
    assert state is not None
    assert state["scratch"] == {"one": {"count": 2}, "two": {"count": 1}} == await first.get_session_scratch("s")
    await second.setup("s", initial_state=json.loads(json.dumps(state)))
    assert [result.result for result in await second.execute("s", [call("a"), call("b")])] == [3, 2]


async def test_d64_a_state_of_other_engines_is_refused() -> None:
    engine = MultiToolEngine({"one": Counter("a")}, {"a": "one"})
    with pytest.raises(SessionStateInvalid, match="its state is of engine 'oen'; did you mean 'one'"):
        await engine.setup("s", initial_state={"scratch": {"oen": {}}})
    assert await engine.get_session_state("s") is None


def model_that_says(name: str) -> ScriptedSpeak:
    return ScriptedSpeak(lambda _tool, _arguments: {"said by": name})


async def test_d31_every_lm_engine_sees_the_calls_of_the_others() -> None:
    toolsets = [Toolset(namespace, None, (Tool("ask", namespace, f"asks {namespace}"),)) for namespace in "ab"]
    speaks = {"a": model_that_says("A"), "b": model_that_says("B")}
    registry = ToolRegistry(toolsets)
    engines = {
        toolset.namespace: LMToolEngine([toolset], speaks[toolset.namespace], registry=registry) for toolset in toolsets
    }
    engine = MultiToolEngine(engines, {"a": "a", "b": "b"})
    await engine.setup("s")
    await engine.execute("s", [ToolCall("ask", "a", {})])
    await engine.execute("s", [ToolCall("ask", "b", {})])
    await engine.execute("s", [ToolCall("ask", "a", {})])
    second, third = speaks["b"].asked[0]["messages"], speaks["a"].asked[1]["messages"]
    assert "asks a" in second[1]["content"]
    assert json.loads(second[2]["content"]) == {"said by": "A"}
    assert [json.loads(message["content"])["said by"] for message in third if message["role"] == "assistant"] == [
        "A",
        "B",
    ]


async def test_engines_of_one_batch_work_at_the_same_time_and_what_they_see_does_not_depend_on_their_pace() -> None:
    stage = Stage()
    engine = MultiToolEngine(
        {"one": Counter("a", stage=stage), "two": Counter("b", stage=stage)}, {"a": "one", "b": "two"}
    )
    await engine.setup("s")
    stage.gate.set()
    await engine.execute("s", [call("a", "0")])
    stage.gate.clear()
    running = asyncio.create_task(engine.execute("s", [call("b", "1"), call("a", "2"), call("b", "3")]))
    await stage.until_waiting(3)
    stage.gate.set()
    await running
    assert await history_of(engine) == ["0", "1", "2", "3"]


async def test_d15_simulating_a_mixed_batch_leaves_every_engine_as_it_was() -> None:
    engine = MultiToolEngine({"one": Counter("a"), "two": Counter("b")}, {"a": "one", "b": "two"})
    await engine.setup("s")
    await engine.execute("s", [call("a"), call("b")])
    before = await engine.get_session_state("s")
    results = await engine.simulate("s", [call("a"), call("b"), call("a"), call("z")])
    assert [result.result for result in results] == [2, 2, 3, None]
    assert await engine.get_session_state("s") == before


async def test_an_aborted_turn_lets_the_other_engines_finish_and_keeps_what_was_done() -> None:
    engine = MultiToolEngine(
        {"strict": Counter("a", on_error="raise"), "other": Counter("b")}, {"a": "strict", "b": "other"}
    )
    await engine.setup("s")
    with pytest.raises(TurnAborted) as aborted:
        await engine.execute("s", [call("b", "1"), call("a", "2", "fail"), call("a", "3"), call("b", "4")])
    assert aborted.value.result.call_id == "2"
    assert await history_of(engine) == ["1", "2", "4"]


async def test_an_aborted_turn_leaves_no_engine_working_behind_its_back() -> None:
    stage = Stage()
    engine = MultiToolEngine(
        {"strict": Counter("a", on_error="raise"), "slow": Counter("b", stage=stage)}, {"a": "strict", "b": "slow"}
    )
    await engine.setup("s")
    turn = asyncio.create_task(engine.execute("s", [call("a", "1", "fail"), call("b", "2")]))
    await stage.until_waiting(1)
    assert not turn.done()
    stage.gate.set()
    with pytest.raises(TurnAborted):
        await turn
    assert await history_of(engine) == ["1", "2"]


async def test_d32_faults_of_the_multi_engine_itself_reach_no_engine() -> None:
    counter = Counter("a")
    always = ErrorCategory(type="network_error", probability=1)
    engine = MultiToolEngine({"one": counter}, {"a": "one"}, error_categories=[always])
    await engine.setup("s")
    (result,) = await engine.execute("s", [call("a")])
    assert result.metadata == {"injected": "network_error"}
    assert await engine.get_session_scratch("s") == {}
    assert await history_of(engine) == ["c"]


@pytest.mark.parametrize("type_", ["partial_result", "stale_result"])
def test_d32_faults_made_of_a_tools_answers_belong_to_the_engine_that_gives_them(type_: str) -> None:
    settings = {"type": "multi", "routes": {"a": "one"}, "error_categories": [{"type": type_, "probability": 1}]}
    parts = EngineParts(
        "m", settings, (), ToolRegistry(()), lambda _: model_that_says("x"), lambda _name, _at: Counter("a")
    )
    with pytest.raises(ConfigurationInvalid, match=f"tools.engines.m: {type_} changes a tool's own answers"):
        MultiToolEngine.from_parts(parts)


async def test_a_teardown_tells_every_engine_what_the_next_attempt_takes_up() -> None:
    kept = []

    class Keeping(Counter):
        async def _close_session(self, session: Session) -> None:
            kept.append(session.kept)

    engine = MultiToolEngine({"one": Keeping("a"), "two": Keeping("b")}, {"a": "one", "b": "two"})
    for keeping in ((), {"a"}):
        await engine.setup("s")
        await engine.teardown("s", keeping=keeping)
    assert kept == [frozenset(), frozenset(), frozenset({"a"}), frozenset({"a"})]


async def test_engines_do_not_draw_the_same_chance() -> None:
    seeds = {}

    class Noting(Counter):
        async def _open_session(self, session: Session) -> None:
            seeds[next(iter(self.toolsets))] = session.seed

    engine = MultiToolEngine({"one": Noting("a"), "two": Noting("b")}, {"a": "one", "b": "two"})
    await engine.setup("s", seed=4)
    assert seeds["a"] != seeds["b"]


async def test_multis_within_a_multi_share_one_history() -> None:
    seen: list[int] = []

    class Seeing(Counter):
        async def _call(self, session: Session, call: ToolCall, tool: Tool) -> Any:
            seen.append(len(session.history))
            return None

    innermost = Seeing("d")
    inner = MultiToolEngine({"one": Counter("a"), "see": innermost}, {"a": "one", "d": "see"})
    engine = MultiToolEngine({"inner": inner, "three": Counter("c")}, {"a": "inner", "d": "inner", "c": "three"})
    await engine.setup("s")
    for batch in (["a", "c"], ["d"], ["c", "a", "c"], ["d", "d"]):
        await engine.execute("s", [call(namespace, namespace) for namespace in batch])
    assert seen == [2, 6, 7]
    assert await history_of(engine) == list("acdcacdd")
    assert await engine.get_session_scratch("s") == {"inner": {"one": {"count": 2}}, "three": {"count": 3}}


async def test_a_job_opens_nothing_on_the_engines_it_has_no_tools_of() -> None:
    used, unused = Counter("a", "b"), Refusing("c")
    engine = MultiToolEngine({"used": used, "unused": unused}, {"a": "used", "b": "used", "c": "unused"})
    await engine.setup("s", namespaces={"a"})
    results = await engine.execute("s", [call("a"), call("b"), call("c")])
    assert [result.error_type for result in results] == [None, ErrorType.unknown_tool, ErrorType.unknown_tool]
    simulated = await engine.simulate("s", [call("a"), call("b"), call("c")])
    assert [result.error_type for result in simulated] == [None, ErrorType.unknown_tool, ErrorType.unknown_tool]
    assert await engine.get_session_scratch("s") == {"used": {"count": 1}}
    await engine.teardown("s")
    assert used.log == ["setup s", "teardown s"]


async def test_a_history_given_at_setup_is_the_one_that_grows() -> None:
    history = History()
    engine = Counter("a")
    await engine.setup("s", history=history)
    await engine.execute("s", [call("a")])
    assert len(history) == 1
