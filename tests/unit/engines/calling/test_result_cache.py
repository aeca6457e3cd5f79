"""Results of read-only tools, kept: what is found again, what never is, and what many who ask at once cost."""

import asyncio
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from engines.calling.effects import Effects
from engines.calling.faults import ErrorCategory
from engines.calling.result_cache import LocalCache, ResultCache
from engines.engine import ToolEngine
from engines.errors import ConfigurationInvalid, SessionLost
from engines.session import Session
from engines.tool import ErrorType, Tool, ToolCall, ToolResult
from engines.toolset import CacheSettings, ToolDefaults, Toolset
from tests.unit.engines.stage import Stage

CITY = {"type": "object", "properties": {"city": {"type": "string", "default": "Oslo"}, "unit": {}}}
READER = Tool("read", "w", parameters=CITY, metadata={"read_only": True})
WRITER = Tool("write", "w", parameters=CITY)


class Backend(ToolEngine):
    """Counts what it is asked; the answer says how often."""

    effects = Effects.backend

    def __init__(self, *toolsets: Toolset, stage: Stage | None = None, **contract: Any) -> None:
        super().__init__(toolsets, **contract)
        self.asked: list[dict[str, Any]] = []
        self.stage = stage
        self.failures: list[Exception] = []

    async def _call(self, session: Session, call: ToolCall, tool: Tool) -> Any:
        self.asked.append(call.arguments)
        count = len(self.asked)
        if self.stage is not None:
            await self.stage.wait()
        if self.failures:
            raise self.failures.pop(0)
        return {"asked": count, "list": [1]}


class Cluster:
    """A cache that workers share, and what it was asked."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.ttls: list[float] = []
        self.gets = 0
        self.hangs = False

    async def get(self, key: str) -> bytes | None:
        self.gets += 1
        if self.hangs:
            await asyncio.Event().wait()
        return self.values.get(key)

    async def put(self, key: str, value: bytes, *, ttl_seconds: float) -> None:
        if self.hangs:
            await asyncio.Event().wait()
        self.values[key] = value
        self.ttls.append(ttl_seconds)


def toolset(*tools: Tool, stateful: bool = False, defaults: ToolDefaults | None = None, **cache: Any) -> Toolset:
    settings = CacheSettings(**cache)
    return Toolset("w", None, tools or (READER, WRITER), defaults or ToolDefaults(), stateful=stateful, cache=settings)


def read(city: str = "Lisbon", call_id: str = "c", **more: Any) -> ToolCall:
    return ToolCall("read", "w", {"city": city, **more}, call_id)


async def answers(engine: ToolEngine, *calls: ToolCall, session_id: str = "s") -> list[tuple[Any, bool]]:
    """What each call came to, one after the other, and whether it was kept from before."""
    results = [(await engine.execute(session_id, [call]))[0] for call in calls]
    return [(result.result and result.result["asked"], result.metadata.get("cached", False)) for result in results]


async def ready(engine: Backend) -> Backend:
    await engine.setup("s")
    return engine


async def test_an_equal_call_of_a_read_only_tool_is_answered_from_before() -> None:
    engine = await ready(Backend(toolset()))
    await engine.setup("another conversation")
    assert await answers(engine, read(unit=1), read("Rome"), ToolCall("read", "w", {"unit": 1, "city": "Lisbon"})) == [
        (1, False),
        (2, False),
        (1, True),
    ]
    assert await answers(engine, read("Rome"), session_id="another conversation") == [(2, True)]
    assert len(engine.asked) == 2


async def test_what_is_given_again_has_the_calls_own_id_and_is_a_copy() -> None:
    engine = await ready(Backend(toolset()))
    (first,) = await engine.execute("s", [read(call_id="1")])
    first.result["list"].append(2)
    (second,) = await engine.execute("s", [read(call_id="2")])
    second.result["list"].append(3)
    (third,) = await engine.execute("s", [read(call_id="3")])
    assert (second.call_id, third.call_id, third.name) == ("2", "3", "w::read")
    assert third.result["list"] == [1]
    assert third.metadata == {"cached": True}


async def test_a_kept_result_stands_in_the_history_as_any_other() -> None:
    engine = await ready(Backend(toolset()))
    await answers(engine, read(), read())
    state = await engine.get_session_state("s")
    assert state is not None
    assert [entry["result"].get("metadata") for entry in state["history"]] == [None, {"cached": True}]


async def test_schema_defaults_and_absent_arguments_are_the_same_call() -> None:
    engine = await ready(Backend(toolset()))
    assert await answers(engine, ToolCall("read", "w", {}), read("Oslo")) == [(1, False), (1, True)]


async def test_writers_are_asked_every_time() -> None:
    engine = await ready(Backend(toolset()))
    write = ToolCall("write", "w", {"city": "x"})
    assert await answers(engine, write, write) == [(1, False), (2, False)]


@pytest.mark.parametrize("other", [{"version": "2"}, {"defaults": ToolDefaults(max_result_chars=500)}])
async def test_another_version_or_another_cut_is_another_call(other: dict[str, Any]) -> None:
    cluster = Cluster()
    first = await ready(Backend(toolset(shared=True), shared_cache=cluster))
    second = await ready(Backend(toolset(shared=True, **other), shared_cache=cluster))
    assert await answers(first, read()) + await answers(second, read()) == [(1, False), (1, False)]


async def test_a_tool_that_changed_or_belongs_to_another_account_is_asked() -> None:
    cluster = Cluster()
    changed = Tool("read", "w", parameters={**CITY, "title": "new"}, metadata=READER.metadata)
    elsewhere = Tool("read", "w", parameters=CITY, metadata={**READER.metadata, "rest_base_url": "http://other"})
    for tool, scope in ((READER, "a"), (READER, "b"), (changed, "a"), (elsewhere, "a")):
        engine = await ready(Backend(toolset(tool, shared=True), shared_cache=cluster, cache_scope=scope))
        assert await answers(engine, read(), read()) == [(1, False), (1, True)]


@pytest.mark.parametrize("failure", [ConnectionError("gone"), ValueError("no")])
async def test_errors_are_never_kept(failure: Exception) -> None:
    engine = await ready(Backend(toolset()))
    engine.failures.append(failure)
    assert await answers(engine, read(), read(), read()) == [(None, False), (2, False), (2, True)]


async def test_d36_faults_on_purpose_are_never_kept_and_fire_over_what_is() -> None:
    engine = Backend(toolset(), error_categories=[ErrorCategory(type="partial_result", probability=0.5)])
    await engine.setup("s", seed=1)
    marks = []
    for _ in range(40):
        (result,) = await engine.execute("s", [read()])
        is_partial = result.metadata.get("injected") == "partial_result"
        marks.append(is_partial)
        assert result.result == ({"asked": 1} if is_partial else {"asked": 1, "list": [1]})
    assert set(marks) == {True, False}
    assert len(engine.asked) == 1


async def test_a_result_is_forgotten_when_its_time_is_over() -> None:
    now = [100.0]
    cache = ResultCache(CacheSettings(ttl_seconds=10), clock=lambda: now[0])
    engine = await ready(Backend(toolset()))
    engine._answering._caches["w"] = cache
    assert await answers(engine, read()) == [(1, False)]
    now[0] = 109.9
    assert await answers(engine, read()) == [(1, True)]
    now[0] = 110
    assert await answers(engine, read(), read()) == [(2, False), (2, True)]


async def test_a_result_that_is_too_large_is_not_kept() -> None:
    engine = await ready(Backend(toolset(max_result_bytes=10)))
    assert await answers(engine, read(), read()) == [(1, False), (2, False)]


def test_those_used_last_are_kept_within_a_number() -> None:
    cache = LocalCache(max_entries=2, max_bytes=1000)
    for key in "ab":
        cache.put(key, b"x", 10)
    assert cache.get("a", 0) == b"x"
    cache.put("c", b"x", 10)
    assert [cache.get(key, 0) for key in "abc"] == [b"x", None, b"x"]


def test_those_used_last_are_kept_within_a_size() -> None:
    cache = LocalCache(max_entries=100, max_bytes=10)
    cache.put("a", b"1234", 10)
    cache.put("a", b"12345", 10)
    cache.put("b", b"12345", 10)
    assert [cache.get(key, 0) for key in "ab"] == [b"12345", b"12345"]
    cache.put("c", b"1", 10)
    assert [cache.get(key, 0) for key in "abc"] == [None, b"12345", b"1"]
    cache.put("d", b"x" * 11, 10)
    assert [cache.get(key, 0) for key in "bcd"] == [None, None, None]


# Many at once


async def many_at_once(engine: Backend, stage: Stage, until: int = 1) -> list[tuple[Any, bool]]:
    for number in range(20):
        await engine.setup(str(number))
    running = [asyncio.create_task(answers(engine, read(), session_id=str(number))) for number in range(20)]
    await stage.until_waiting(until)
    for _ in range(20):
        await asyncio.sleep(0)
    stage.gate.set()
    return [answer for (answer,) in await asyncio.gather(*running)]


async def test_equal_calls_at_once_are_one_call() -> None:
    stage = Stage()
    engine = Backend(toolset(), stage=stage)
    assert sorted(await many_at_once(engine, stage)) == [(1, False), *[(1, True)] * 19]
    assert len(engine.asked) == 1


async def test_when_that_one_call_fails_the_others_are_made() -> None:
    stage = Stage()
    engine = Backend(toolset(), stage=stage)
    engine.failures.append(ConnectionError("only this one"))
    outcomes = await many_at_once(engine, stage)
    assert sum(asked is None for asked, _ in outcomes) == 1
    assert len(engine.asked) == 20


async def test_the_others_are_then_made_at_the_same_time() -> None:
    stage = Stage()
    may_fail = asyncio.Event()

    class FirstFails(Backend):
        async def _call(self, session: Session, call: ToolCall, tool: Tool) -> Any:
            if session.id == "0":
                await may_fail.wait()
                raise ConnectionError
            return await super()._call(session, call, tool)

    engine = FirstFails(toolset(), stage=stage)
    for number in range(20):
        await engine.setup(str(number))
    running = [asyncio.create_task(answers(engine, read(), session_id=str(number))) for number in range(20)]
    for _ in range(5):
        await asyncio.sleep(0)
    assert stage.waiting == 0
    may_fail.set()
    await stage.until_waiting(19)
    stage.gate.set()
    await asyncio.gather(*running)


async def test_a_result_too_large_to_keep_still_answers_those_who_wait_for_it() -> None:
    stage = Stage()
    engine = Backend(toolset(max_result_bytes=1), stage=stage)
    assert sorted(await many_at_once(engine, stage)) == [(1, False), *[(1, True)] * 19]


@pytest.mark.parametrize("leaves_first", [True, False])
async def test_who_is_cancelled_takes_nothing_from_the_others(leaves_first: bool) -> None:
    stage = Stage()
    engine = Backend(toolset(), stage=stage)
    for session_id in ("first", "second", "third"):
        await engine.setup(session_id)
    tasks = []
    for session_id in ("first", "second", "third"):
        tasks.append(asyncio.create_task(answers(engine, read(), session_id=session_id)))
        await asyncio.sleep(0)
    await stage.until_waiting(1)
    leaving = tasks.pop(0 if leaves_first else 1)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    stage.gate.set()
    for ((asked, _),) in await asyncio.gather(*tasks):
        assert asked is not None


async def test_a_lost_session_of_the_one_who_asks_does_not_end_those_who_wait() -> None:
    stage = Stage()
    engine = Backend(toolset(), stage=stage)
    engine.failures.append(SessionLost("w", "first", "404"))
    await engine.setup("first")
    await engine.setup("second")
    first = asyncio.create_task(answers(engine, read(), session_id="first"))
    await stage.until_waiting(1)
    second = asyncio.create_task(answers(engine, read(), session_id="second"))
    await asyncio.sleep(0)
    stage.gate.set()
    with pytest.raises(SessionLost):
        await first
    assert await second == [(2, False)]


# The cluster's


async def test_workers_share_what_one_of_them_asked() -> None:
    cluster = Cluster()
    first, second = [await ready(Backend(toolset(shared=True), shared_cache=cluster)) for _ in range(2)]
    assert await answers(first, read()) == [(1, False)]
    assert await answers(second, read(), read()) == [(1, True), (1, True)]
    assert second.asked == []
    assert cluster.gets == 2  # The second worker keeps what it found.
    assert cluster.ttls == [3600]


async def test_nothing_is_shared_unless_the_toolset_says_so() -> None:
    cluster = Cluster()
    engine = await ready(Backend(toolset(), shared_cache=cluster))
    await answers(engine, read())
    assert (cluster.gets, cluster.values) == (0, {})


async def test_no_key_and_no_value_tells_the_arguments_or_the_account() -> None:
    cluster = Cluster()
    engine = await ready(Backend(toolset(shared=True), shared_cache=cluster, cache_scope="secret account"))
    await answers(engine, read("secret city"))
    ((key, value),) = cluster.values.items()
    assert len(key) == 64
    assert b"secret" not in key.encode() + value


def written(**changes: Any) -> bytes:
    return orjson.dumps({"result": {"asked": 7}, "metadata": {}, "kept_at": 0, **changes})


@pytest.mark.parametrize(
    "value",
    [
        b"no json",
        b"[]",
        b"\xff",
        b"[" * 100_000,
        written(more=1),
        written(metadata=[]),
        written(kept_at="now"),
        written(),  # Its time was over long ago.
    ],
)
async def test_what_is_no_value_of_ours_is_a_miss(value: bytes) -> None:
    cluster = Cluster()
    engine = await ready(Backend(toolset(shared=True), shared_cache=cluster))
    await answers(engine, read())
    (key,) = cluster.values
    cluster.values[key] = value
    second = await ready(Backend(toolset(shared=True), shared_cache=cluster))
    assert await answers(second, read()) == [(1, False)]
    assert cluster.values[key] != value


async def test_a_value_from_the_cluster_is_kept_for_the_rest_of_its_time_only() -> None:
    now = [1000.0]
    cluster = Cluster()
    engine = await ready(Backend(toolset(shared=True)))
    engine._answering._caches["w"] = ResultCache(
        CacheSettings(shared=True, ttl_seconds=10), shared=cluster, clock=lambda: now[0]
    )
    await answers(engine, read())
    (key,) = cluster.values
    for kept_at in (995.0, 5000.0):  # A clock that goes ahead gains nothing.
        cluster.values[key] = written(kept_at=kept_at)
        engine._answering._caches["w"]._local = LocalCache(max_entries=9, max_bytes=999)
        now[0] = 1000
        assert await answers(engine, read()) == [(7, True)]
        cluster.values.clear()
        now[0] = 1000 + (5 if kept_at < now[0] else 10)
        ((_, cached),) = await answers(engine, read())
        assert not cached


async def test_a_cache_that_hangs_costs_a_moment_and_no_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engines.calling.result_cache._SHARED_SECONDS", 0.01)
    cluster = Cluster()
    cluster.hangs = True
    engine = await ready(Backend(toolset(shared=True), shared_cache=cluster))
    assert await answers(engine, read(), read()) == [(1, False), (1, True)]


# What may be kept at all


class OfTheSession(Backend):
    effects = Effects.session


@pytest.mark.parametrize(
    ("build", "why"),
    [
        (lambda: Backend(toolset(WRITER)), "none of its tools is known to be read-only"),
        (lambda: Backend(toolset(READER, stateful=True)), "what its tools say depends on the conversation"),
        (lambda: OfTheSession(toolset(READER)), "none of its tools is known to be read-only and independent"),
    ],
)
def test_a_cache_that_could_keep_nothing_is_refused(build: Callable[[], ToolEngine], why: str) -> None:
    with pytest.raises(ConfigurationInvalid, match=rf"tools\.namespaces\.w\.cache: nothing of 'w' can be kept: {why}"):
        build()


async def test_a_result_no_json_can_hold_is_given_and_not_kept() -> None:
    deep: list[Any] = []
    for _ in range(2000):
        deep = [deep]

    class Deep(Backend):
        async def _call(self, session: Session, call: ToolCall, tool: Tool) -> Any:
            await super()._call(session, call, tool)
            return ToolResult(call.call_id, call.qualified_name, {"asked": len(self.asked), "deep": deep})

    engine = await ready(Deep(toolset()))
    assert await answers(engine, read(), read()) == [(1, False), (2, False)]


async def test_a_timeout_is_not_kept_either() -> None:
    stage = Stage()
    engine = await ready(Backend(toolset(defaults=ToolDefaults(timeout_seconds=0.01)), stage=stage))
    (result,) = await engine.execute("s", [read()])
    assert result.error_type is ErrorType.timeout
    stage.gate.set()
    assert await answers(engine, read()) == [(2, False)]
