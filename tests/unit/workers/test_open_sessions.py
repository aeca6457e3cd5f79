"""Sessions on a backend that outlives its users: none is forgotten, none too many is open, none is torn down twice."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from engines.errors import SessionLost, ToolFailed
from engines.multi import MultiToolEngine
from engines.tool import ErrorType
from tests.support.rooms import RoomEngine, Rooms
from tests.unit.workers.conftest import RUN, Bench, Benches
from tests.unit.workers.test_execute import JOB, RECIPE, Around, Away, equipment_of, put

STATEFUL = RECIPE + "  namespaces: {weather: {stateful: true, max_concurrency: 1}}\n"
NAMESPACE = "weather"


@asynccontextmanager
async def roomy(benches: Benches, rooms: Rooms, *, takes_up: bool = False, jobs: int = 1) -> AsyncIterator[Bench]:
    """A bench whose one namespace is answered by the rooms."""
    async with benches.bench(STATEFUL, [JOB] * jobs, teardown_seconds=0.2) as bench:
        toolset = (await equipment_of(bench)).engine.toolsets[NAMESPACE]
        engine = RoomEngine([toolset], rooms, takes_up=takes_up)
        await put(bench, engine=MultiToolEngine({"rooms": engine}, {NAMESPACE: "rooms"}))
        yield bench


async def sessions_left(bench: Bench) -> int:
    return (await bench.worker.ledger.progress.snapshot(RUN)).sessions_left


async def permits_held(bench: Bench) -> int:
    return (await bench.worker.ledger.permits.statistics(NAMESPACE)).held


async def hurry(bench: Bench) -> None:
    """Every session is due for the reaper now."""
    redis = bench.worker.ledger.scripts.redis
    holders: list[Any] = await redis.zrange("parley:sessions", 0, -1)
    for holder in holders:
        await redis.zadd("parley:sessions", {holder: 1}, xx=True)


async def once_before(bench: Bench, act: Callable[[], Awaitable[None]]) -> None:
    """Let something happen before the model is asked the second time: one checkpoint is there then."""
    model, asked = (await equipment_of(bench)).model, 0

    async def before() -> None:
        nonlocal asked
        asked += 1
        if asked == 2:
            await act()

    await put(bench, model=Around(model, before))


async def killed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the job until after its first checkpoint and let its process die there; the sweep notices."""
    started = bench.worker.name
    reached, model = asyncio.Event(), (await equipment_of(bench)).model

    async def stop() -> None:
        reached.set()
        await asyncio.Event().wait()

    await once_before(bench, stop)
    job = asyncio.create_task(bench.execute())
    await reached.wait()
    with monkeypatch.context() as dead:
        dead.setattr("workers.sessions._tear_down", _nothing)
        dead.setattr(type(bench.worker.ledger.claims), "give_back", _nothing)
        job.cancel()
        await asyncio.wait([job])
    await put(bench, model=model)
    assert await bench.worker.ledger.claims.expire_all(RUN, nonce_prefix=started) == 1
    assert (await bench.worker.ledger.sweeping.sweep(RUN, "sweeper")).expired == 1


async def _nothing(*_: Any, **__: Any) -> None:
    """What a dead process does."""


async def test_a_session_is_noted_while_it_is_open_and_forgotten_after_its_teardown(benches: Benches) -> None:
    rooms, seen = Rooms(), list[tuple[int, int]]()
    async with roomy(benches, rooms) as bench:
        redis = bench.worker.ledger.scripts.redis

        async def look() -> None:
            seen.append((len(rooms.open), await redis.zcard("parley:sessions")))

        await once_before(bench, look)
        assert await bench.execute() == "ok"
        assert seen == [(1, 1)]
        assert rooms.open == {}
        assert await redis.keys(f"parley:run:{RUN}:session:*") == []
        assert (await sessions_left(bench), await permits_held(bench)) == (0, 0)


async def test_f3_a_dead_attempts_session_is_torn_down_before_the_next_one_is_set_up(
    benches: Benches, monkeypatch: pytest.MonkeyPatch
) -> None:
    rooms = Rooms()
    async with roomy(benches, rooms) as bench:
        await killed(bench, monkeypatch)
        assert (list(rooms.open), await sessions_left(bench), await permits_held(bench)) == (["room-1"], 1, 1)
        assert await bench.execute() == "ok"
        assert (rooms.open, rooms.opened, rooms.most) == ({}, 2, 1)
        assert (await sessions_left(bench), await permits_held(bench)) == (0, 0)
    (record,) = bench.records()
    assert (record["attempt"], record["usage"]["model_calls"]) == (2, 3)


async def test_f3_a_dead_attempts_session_is_reaped_by_any_worker_when_no_attempt_comes(
    benches: Benches, monkeypatch: pytest.MonkeyPatch
) -> None:
    rooms = Rooms()
    async with roomy(benches, rooms) as bench:
        await killed(bench, monkeypatch)
        assert await bench.worker.reaper.look() == 0, "the next attempt has the first while"
        await hurry(bench)
        assert await bench.worker.reaper.look() == 1
        assert (rooms.open, await sessions_left(bench)) == ({}, 0)
        assert await bench.execute() == "ok"
        assert (rooms.open, rooms.most) == ({}, 1)


async def test_f3_while_a_dead_attempts_session_does_not_end_the_job_waits_for_the_quarantine_and_pays_no_strike(
    benches: Benches, monkeypatch: pytest.MonkeyPatch
) -> None:
    rooms = Rooms()
    async with roomy(benches, rooms) as bench:
        await killed(bench, monkeypatch)
        rooms.refuses_to_end = True
        for _ in range(4):
            assert await bench.execute() == "later: session_left"
            assert (rooms.opened, await permits_held(bench)) == (1, 1)
        await bench.worker.ledger.scripts.redis.zadd(f"parley:run:{RUN}:left", {"0": 1}, xx=True)
        assert await bench.execute() == "ok", "the quarantine is over: the job does not wait for ever"
        assert await sessions_left(bench) == 1
        rooms.refuses_to_end = False
        await hurry(bench)
        assert await bench.worker.reaper.look() == 1
        assert (rooms.open, await sessions_left(bench), await permits_held(bench)) == ({}, 0, 0)
    assert bench.records()[0]["status"] == "ok"


@pytest.mark.parametrize("trouble", ["refuses_to_end", "hangs"])
async def test_f37_a_teardown_that_fails_or_hangs_is_bounded_recorded_and_made_good_by_the_reaper(
    benches: Benches, trouble: str
) -> None:
    rooms = Rooms()
    setattr(rooms, trouble, True)
    async with roomy(benches, rooms, jobs=2) as bench:
        assert await bench.execute(0) == "ok"
        assert (len(rooms.open), await sessions_left(bench), await permits_held(bench)) == (1, 1, 1)
        assert await bench.execute(1) == "parked", "the permit is in quarantine"
        assert await bench.worker.reaper.look() == 0
        assert await sessions_left(bench) == 1
        setattr(rooms, trouble, False)
        await hurry(bench)
        assert await bench.worker.reaper.look() == 1
        assert (rooms.open, await sessions_left(bench)) == ({}, 0)
        assert await bench.execute(1) == "ok", "the permit was handed on"
    first, second = bench.records()
    assert first["metadata"]["teardown"].startswith("failed: ")
    assert "teardown" not in second["metadata"]


async def test_a_setup_that_was_broken_off_is_left_to_the_reaper(benches: Benches) -> None:
    rooms, entered = Rooms(), asyncio.Event()
    async with roomy(benches, rooms) as bench:
        engine = (await equipment_of(bench)).engine
        reaped = list[tuple[str, Any]]()

        async def never(*_: Any, **__: Any) -> None:
            entered.set()
            await asyncio.Event().wait()

        async def reap(session_id: str, *, scratch: Any, namespaces: Any) -> None:
            reaped.append((session_id, scratch))

        engine.setup, engine.reap = never, reap  # type: ignore[method-assign]
        job = asyncio.create_task(bench.execute())
        await entered.wait()
        job.cancel()
        await asyncio.wait([job])
        assert await sessions_left(bench) == 1
        await hurry(bench)
        assert await bench.worker.reaper.look() == 1
        assert reaped == [(f"{RUN}.000000.1", {})]


@pytest.mark.parametrize(
    ("failure", "outcome"),
    [
        (SessionLost(NAMESPACE, "s", "the backend is down"), "later: session_lost"),
        (ToolFailed(ErrorType.network, "the backend is down"), "later: backend_network"),
    ],
)
async def test_a_setup_that_fails_leaves_nothing_to_reap_and_may_pass(
    benches: Benches, failure: Exception, outcome: str
) -> None:
    async with roomy(benches, Rooms()) as bench:
        engine = (await equipment_of(bench)).engine

        async def refuses(*_: Any, **__: Any) -> None:
            raise failure

        engine.setup = refuses  # type: ignore[method-assign]
        assert await bench.execute() == outcome
        assert (await sessions_left(bench), await permits_held(bench)) == (0, 0)
        assert await bench.worker.ledger.scripts.redis.zcard("parley:sessions") == 0


async def test_f28_a_handed_on_job_goes_on_in_the_same_room_where_the_engine_takes_sessions_up(
    benches: Benches,
) -> None:
    rooms = Rooms()
    async with roomy(benches, rooms, takes_up=True) as bench:
        await once_before(bench, drain(bench))
        assert await bench.execute() == "handed back"
        assert list(rooms.open) == ["room-1"]
        assert await permits_held(bench) == 1
        bench.worker.draining.has_begun = False
        assert await bench.execute() == "ok"
        assert (rooms.open, rooms.opened) == ({}, 1)
        assert {room for room, _ in rooms.calls} == {"room-1"}
        assert len({session for _, session in rooms.calls}) == 2, "two attempts"
        assert (await sessions_left(bench), await permits_held(bench)) == (0, 0)


async def test_f28_a_handed_on_jobs_session_is_torn_down_where_the_engine_sets_up_afresh(benches: Benches) -> None:
    rooms = Rooms()
    async with roomy(benches, rooms) as bench:
        await once_before(bench, drain(bench))
        assert await bench.execute() == "handed back"
        assert (rooms.open, await sessions_left(bench), await permits_held(bench)) == ({}, 0, 0)


async def test_a_postponed_job_goes_on_in_its_room(benches: Benches) -> None:
    rooms = Rooms()
    async with roomy(benches, rooms, takes_up=True) as bench:
        model = (await equipment_of(bench)).model
        await once_before(bench, unreachable)
        assert await bench.execute() == "later: model_unavailable"
        assert list(rooms.open) == ["room-1"]
        await put(bench, model=model)
        assert await bench.execute() == "ok"
        assert (rooms.open, rooms.opened) == ({}, 1)


async def test_f3_a_killed_attempts_room_is_taken_up(benches: Benches, monkeypatch: pytest.MonkeyPatch) -> None:
    rooms = Rooms()
    async with roomy(benches, rooms, takes_up=True) as bench:
        await killed(bench, monkeypatch)
        assert await bench.execute() == "ok"
        assert (rooms.open, rooms.opened) == ({}, 1)
        assert (await sessions_left(bench), await permits_held(bench)) == (0, 0)


async def test_a_room_that_was_reaped_before_it_was_taken_up_fails_the_job_with_its_reason(benches: Benches) -> None:
    rooms = Rooms()
    async with roomy(benches, rooms, takes_up=True) as bench:
        await once_before(bench, drain(bench))
        assert await bench.execute() == "handed back"
        bench.worker.draining.has_begun = False
        await hurry(bench)
        assert await bench.worker.reaper.look() == 1
        assert await bench.execute() == "failed: session_lost"
        assert (rooms.opened, await sessions_left(bench), await permits_held(bench)) == (1, 0, 0)
    (record,) = bench.records()
    assert "torn down meanwhile" in record["error"]["message"]


async def test_a_room_whose_next_user_could_not_be_set_up_is_still_known(benches: Benches) -> None:
    rooms = Rooms()
    async with roomy(benches, rooms, takes_up=True) as bench:
        await once_before(bench, drain(bench))
        assert await bench.execute() == "handed back"
        bench.worker.draining.has_begun = False
        engine = (await equipment_of(bench)).engine

        async def refuses(*_: Any, **__: Any) -> None:
            raise RuntimeError("no connection")

        engine.setup = refuses  # type: ignore[method-assign]
        assert await bench.execute() == "later: internal"
        await hurry(bench)
        assert await bench.worker.reaper.look() == 1
        assert (rooms.open, await sessions_left(bench)) == ({}, 0)


async def test_f3_a_backend_that_hangs_holds_the_next_attempt_up_no_longer_than_a_teardown_may_take(
    benches: Benches, monkeypatch: pytest.MonkeyPatch
) -> None:
    rooms = Rooms()
    async with roomy(benches, rooms) as bench:
        await killed(bench, monkeypatch)
        rooms.hangs = True
        assert await bench.execute() == "later: session_left"
        rooms.hangs = False


async def test_a_claim_lost_before_the_session_was_set_up_sets_nothing_up(
    benches: Benches, monkeypatch: pytest.MonkeyPatch
) -> None:
    rooms = Rooms()
    async with roomy(benches, rooms) as bench:
        note = type(bench.worker.ledger.sessions).open

        async def lose_the_claim(*arguments: Any) -> Any:
            await bench.worker.ledger.claims.expire_all(RUN)
            return await note(*arguments)

        monkeypatch.setattr(type(bench.worker.ledger.sessions), "open", lose_the_claim)
        assert await bench.execute() == "lost"
        assert rooms.opened == 0


async def test_a_room_that_its_backend_forgot_is_not_taken_up(benches: Benches) -> None:
    rooms = Rooms()
    async with roomy(benches, rooms, takes_up=True) as bench:

        async def forget() -> None:
            raise SessionLost(NAMESPACE, "s", "404")

        await once_before(bench, forget)
        assert await bench.execute() == "later: session_lost"
        assert (rooms.open, await sessions_left(bench), await permits_held(bench)) == ({}, 0, 0)
        assert await bench.execute() == "failed: session_lost"


async def test_f37_a_worker_that_ends_looks_once_more_for_what_it_could_not_tear_down(benches: Benches) -> None:
    rooms = Rooms(refuses_to_end=True)
    async with roomy(benches, rooms) as bench:
        assert await bench.execute() == "ok"
        rooms.refuses_to_end = False
    assert rooms.open == {}


async def test_f12_a_zombie_leaves_the_room_to_who_took_it_up(benches: Benches) -> None:
    rooms = Rooms()
    async with roomy(benches, rooms, takes_up=True) as bench:

        async def lose_the_claim() -> None:
            await bench.worker.ledger.claims.expire_all(RUN)

        await once_before(bench, lose_the_claim)
        assert await bench.execute() == "lost"
        assert list(rooms.open) == ["room-1"]
        assert await bench.execute() == "ok"
        assert (rooms.open, rooms.opened) == ({}, 1)


async def test_a_broker_that_is_away_at_the_teardown_costs_the_job_nothing_and_is_made_good_later(
    benches: Benches, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jobs.errors import BrokerUnreachable

    rooms = Rooms()
    async with roomy(benches, rooms) as bench:

        async def away(*_: Any) -> None:
            raise BrokerUnreachable("redis://host", "timed out")

        monkeypatch.setattr(type(bench.worker.ledger.sessions), "close", away)
        assert await bench.execute() == "ok"
        monkeypatch.undo()
        assert (rooms.open, await sessions_left(bench)) == ({}, 1)
        assert await bench.worker.reaper.look() == 1
        assert (await sessions_left(bench), await permits_held(bench)) == (0, 0)


async def unreachable() -> None:
    await Away().ask(None)


def drain(bench: Bench) -> Callable[[], Awaitable[None]]:
    async def begin() -> None:
        bench.worker.draining.begin()

    return begin
