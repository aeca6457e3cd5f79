"""A batch carried out: what runs side by side, what keeps its order, and what is left when it ends early."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from engines.calling.effects import Effects
from engines.engine import ToolEngine
from engines.errors import SessionLost, TurnAborted
from engines.multi import MultiToolEngine
from engines.session import Session
from engines.tool import ErrorType, Tool, ToolCall, ToolResult
from engines.toolset import ToolDefaults, Toolset
from tests.unit.engines.stage import Stage

MANY = 40


class Backend(ToolEngine):
    """Waits for the stage's gate in `wait`, fails in `fail`, loses its session in `lose`; notes what it was asked."""

    def __init__(self, stage: Stage, *toolsets: Toolset) -> None:
        super().__init__(toolsets)
        self.stage = stage
        self.asked: list[tuple[str | None, int]] = []
        self.most = 0
        self.running = 0

    async def _call(self, session: Session, call: ToolCall, tool: Tool) -> Any:
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            return await self._answer(session, call, tool)
        finally:
            self.running -= 1

    async def _answer(self, session: Session, call: ToolCall, tool: Tool) -> Any:
        if tool.name == "wait":
            await self.stage.wait()
        self.asked.append((call.call_id, session.call_number))
        if tool.name == "fail":
            raise ConnectionError(call.call_id)
        if tool.name == "lose":
            raise SessionLost(tool.namespace, session.id, "gone")
        return call.call_id


class Playing(Backend):
    """One whose calls change the session."""

    effects = Effects.session


def toolset(namespace: str = "w", *, stateful: bool = False, **defaults: Any) -> Toolset:
    tools = tuple(Tool(name, namespace) for name in ("wait", "quick", "fail", "lose"))
    return Toolset(namespace, None, tools, ToolDefaults(**defaults), stateful=stateful)


def calls(*names: str, namespace: str = "w") -> list[ToolCall]:
    return [ToolCall(name, namespace, {}, str(position)) for position, name in enumerate(names)]


async def ids_of(engine: ToolEngine) -> list[str]:
    state = await engine.get_session_state("s")
    assert state is not None
    return [entry["call"]["id"] for entry in state["history"]]


async def executing(engine: ToolEngine, batch: list[ToolCall]) -> "asyncio.Task[list[ToolResult]]":
    await engine.setup("s")
    return asyncio.create_task(engine.execute("s", batch))


async def test_a11_calls_of_a_stateless_toolset_run_side_by_side_and_come_back_in_call_order() -> None:
    engine = Backend(Stage(), toolset())
    running = await executing(engine, calls("wait", "quick", "wait", "quick", "wait"))
    await engine.stage.until_waiting(3)
    assert [call_id for call_id, _ in engine.asked] == ["1", "3"]
    engine.stage.gate.set()
    assert [result.result for result in await running] == ["0", "1", "2", "3", "4"]
    assert await ids_of(engine) == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize(
    "build",
    [lambda stage: Backend(stage, toolset(stateful=True)), lambda stage: Playing(stage, toolset())],
    ids=["stateful", "session"],
)
async def test_a11_calls_that_depend_on_the_session_keep_their_order(build: Callable[[Stage], Backend]) -> None:
    engine = build(Stage())
    running = await executing(engine, calls("wait", "quick", "wait"))
    await engine.stage.until_waiting(1)
    for _ in range(20):
        await asyncio.sleep(0)
    assert (engine.stage.waiting, engine.asked) == (1, [])
    engine.stage.gate.set()
    await running
    assert [call_id for call_id, _ in engine.asked] == ["0", "1", "2"]
    assert engine.most == 1


async def test_a11_a_stateful_toolset_keeps_its_order_beside_a_stateless_one_of_the_same_engine() -> None:
    engine = Backend(Stage(), toolset("free"), toolset("bound", stateful=True))
    batch = [
        ToolCall("wait", "bound", {}, "b1"),
        ToolCall("quick", "bound", {}, "b2"),
        ToolCall("quick", "free", {}, "f"),
    ]
    running = await executing(engine, batch)
    await engine.stage.until_waiting(1)
    while not engine.asked:
        await asyncio.sleep(0)
    assert [call_id for call_id, _ in engine.asked] == ["f"]
    engine.stage.gate.set()
    await running
    assert [call_id for call_id, _ in engine.asked] == ["f", "b1", "b2"]
    assert await ids_of(engine) == ["b1", "b2", "f"]


async def test_a11_only_so_many_run_at_once() -> None:
    engine = Backend(Stage(), toolset())
    running = await executing(engine, calls(*["wait"] * MANY))
    await engine.stage.until_waiting(16)
    for _ in range(20):
        await asyncio.sleep(0)
    assert engine.stage.waiting == 16
    engine.stage.gate.set()
    assert len(await running) == MANY
    assert engine.most == 16


async def test_a11_every_call_has_its_own_number_however_they_overlap() -> None:
    engine = Backend(Stage(), toolset())
    running = await executing(engine, [*calls("wait"), ToolCall("none", "w", {}, "x"), *calls("wait", "quick")])
    await engine.stage.until_waiting(2)
    engine.stage.gate.set()
    await running
    await engine.execute("s", calls("quick"))
    assert sorted(number for _, number in engine.asked) == [0, 1, 2, 3]


async def test_refused_calls_are_told_in_their_places_beside_those_that_run() -> None:
    engine = Backend(Stage(), toolset())
    await engine.setup("s")
    batch = [*calls("quick"), ToolCall("none", "w", {}, "x"), *calls("quick")]
    results = await engine.execute("s", batch)
    assert [result.error_type for result in results] == [None, ErrorType.unknown_tool, None]
    assert await ids_of(engine) == ["0", "x", "0"]


async def test_e13_a_toolset_that_aborts_keeps_its_order_so_that_nothing_runs_after_the_failure() -> None:
    engine = Backend(Stage(), toolset(on_error="raise"))
    await engine.setup("s")
    with pytest.raises(TurnAborted):
        await engine.execute("s", calls("quick", "fail", "quick"))
    assert [call_id for call_id, _ in engine.asked] == ["0", "1"]
    assert await ids_of(engine) == ["0", "1"]


async def test_e13_an_abort_lets_the_calls_beside_it_finish_and_keeps_what_was_done() -> None:
    engine = Backend(Stage(), toolset("free"), toolset("strict", on_error="raise"))
    batch = [
        ToolCall("quick", "strict", {}, "0"),
        ToolCall("fail", "strict", {}, "1"),
        ToolCall("wait", "free", {}, "2"),
        ToolCall("quick", "strict", {}, "3"),
    ]
    running = await executing(engine, batch)
    await engine.stage.until_waiting(1)
    engine.stage.gate.set()
    with pytest.raises(TurnAborted) as aborted:
        await running
    assert aborted.value.result.call_id == "1"
    assert await ids_of(engine) == ["0", "1", "2"]


async def test_a_lost_session_ends_the_batch_when_the_calls_beside_it_are_done() -> None:
    engine = Backend(Stage(), toolset())
    running = await executing(engine, calls("wait", "lose", "quick"))
    await engine.stage.until_waiting(1)
    assert not running.done()
    engine.stage.gate.set()
    with pytest.raises(SessionLost):
        await running
    assert await ids_of(engine) == ["0", "2"]


async def test_a_cancelled_batch_leaves_nothing_running_and_keeps_what_was_done() -> None:
    engine = Backend(Stage(), toolset())
    running = await executing(engine, calls("quick", "wait", "quick", "wait"))
    await engine.stage.until_waiting(2)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert engine.running == 0
    assert await ids_of(engine) == ["0", "2"]
    assert (await engine.execute("s", calls("quick")))[0].result == "0"


async def test_calls_that_were_not_made_leave_no_gap_in_the_history_of_several_engines() -> None:
    one = Backend(Stage(), toolset("a", on_error="raise"), toolset("b"))
    engine = MultiToolEngine({"one": one, "two": Backend(Stage(), toolset("c"))}, {"a": "one", "b": "one", "c": "two"})
    await engine.setup("s")
    made = [("a", "fail"), ("c", "quick"), ("a", "quick"), ("c", "quick"), ("b", "quick"), ("c", "quick")]
    batch = [ToolCall(name, namespace, {}, f"{namespace}{at}") for at, (namespace, name) in enumerate(made)]
    with pytest.raises(TurnAborted):
        await engine.execute("s", batch)
    assert await ids_of(engine) == ["a0", "c1", "c3", "b4", "c5"]
