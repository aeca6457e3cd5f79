"""The feeder on a real Redis: a bounded window, one feeder at a time, and a ledger that was lost."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from jobs.job import JobReference
from jobs.ledger import Ledger
from jobs.ledger.claims import Granted, Usage
from jobs.ledger.progress import Snapshot
from jobs.run import InputWriter, create_run
from producer.feeder import Feeder
from results.async_store import AsyncStore
from results.entries import Entry
from results.manifest import RunManifest
from results.shards import ShardWriter
from results.store import open_store
from tests.support.redis_server import RedisServer, redis_server

RUN, JOBS = "run", 50


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with redis_server(tmp_path_factory.mktemp("redis")) as running:
        yield running


@dataclass
class Desk:
    """A ledger, a store and a run in it."""

    ledger: Ledger
    store: AsyncStore
    manifest: RunManifest
    server: RedisServer

    def feeder(self, window: int = 20_000) -> Feeder:
        return Feeder(
            self.ledger,
            self.store,
            self.manifest,
            self.store.url,
            window=window,
            every_seconds=0.01,
            sweep_every_seconds=0.01,
        )

    async def settle(self, index: int) -> None:
        outcome = await self.ledger.claims.claim(JobReference(RUN, index), f"nonce-{index}")
        assert isinstance(outcome, Granted), outcome
        assert await self.ledger.claims.settle(outcome.claim, "ok", Usage())

    async def queued(self) -> int:
        return int(await self.ledger.scripts.redis.llen("conversations")) + int(
            await self.ledger.scripts.redis.llen("ns.desk")
        )


@pytest.fixture
async def desk(server: RedisServer, tmp_path: Path) -> AsyncIterator[Desk]:
    with server.client() as client:
        client.flushall()
    store = open_store(str(tmp_path))
    writer = InputWriter(store, RUN, jobs_per_part=7)
    for number in range(JOBS):
        writer.add({"prompt": str(number)}, ("desk",) if number % 5 == 0 else ())
    manifest = create_run(store, run_id=RUN, name="w", recipe_json=b"{}", written=writer.finish(), limits={"desk": 3})
    async with Ledger.open(server.url) as ledger, AsyncStore(store) as opened:
        yield Desk(ledger, opened, manifest, server)


async def test_the_window_bounds_what_is_in_the_queues_and_is_topped_up_as_jobs_settle(desk: Desk) -> None:
    feeder = desk.feeder(window=10)
    await feeder.register()
    assert await desk.ledger.feeding.take_lease(RUN, feeder.token)
    await feeder.top_up(await desk.ledger.progress.snapshot(RUN))
    assert await desk.queued() == 10
    await feeder.top_up(await desk.ledger.progress.snapshot(RUN))
    assert await desk.queued() == 10
    for index in range(4):
        await desk.settle(index)
    await feeder.top_up(await desk.ledger.progress.snapshot(RUN))
    assert (await desk.ledger.progress.snapshot(RUN)).window >= 10


async def test_each_job_goes_to_the_queue_of_its_route(desk: Desk) -> None:
    feeder = desk.feeder()
    await feeder.register()
    await desk.ledger.feeding.take_lease(RUN, feeder.token)
    await feeder.top_up(await desk.ledger.progress.snapshot(RUN))
    redis = desk.ledger.scripts.redis
    assert await redis.llen("ns.desk") == JOBS // 5
    assert await redis.llen("conversations") == JOBS - JOBS // 5
    assert (await desk.ledger.permits.statistics("desk")).limit == 3


async def test_it_ends_when_every_job_is_settled_and_says_how_the_run_went(desk: Desk) -> None:
    seen: list[Snapshot] = []
    feeding = asyncio.create_task(desk.feeder().run(seen.append))
    while not seen or seen[-1].window < JOBS:
        await asyncio.sleep(0.01)
    for index in range(JOBS):
        claimed = await desk.ledger.claims.claim(JobReference(RUN, index), f"nonce-{index}")
        assert isinstance(claimed, Granted)
        await desk.ledger.claims.settle(claimed.claim, "ok", Usage())
    last = await feeding
    assert (last.ok, last.pending, last.is_finished) == (JOBS, 0, True)
    assert await desk.ledger.runs.active() == []


async def test_f35_a_second_feeder_stands_by_and_takes_over_when_the_first_is_gone(desk: Desk) -> None:
    first, second = desk.feeder(window=10), desk.feeder(window=20)
    await first.register()
    assert await desk.ledger.feeding.take_lease(RUN, first.token)
    await first.top_up(await desk.ledger.progress.snapshot(RUN))
    seen: list[Snapshot] = []
    standing_by = asyncio.create_task(second.run(seen.append))
    while not second.is_standing_by:
        await asyncio.sleep(0.01)
    assert (await desk.ledger.progress.snapshot(RUN)).window == 10
    await desk.ledger.feeding.drop_lease(RUN, first.token)
    while seen[-1].window < 20:
        await asyncio.sleep(0.01)
    standing_by.cancel()
    await asyncio.wait({standing_by})


async def test_f7_a_ledger_that_was_wiped_gets_its_progress_back_from_the_results(desk: Desk) -> None:
    async with ShardWriter(desk.store, RUN, writer="w") as sink:
        sink_entries = [Entry(index, 1, "ok", 10, 5, 2, 1) for index in range(20)]
        writes = [sink.write(b'{"index":%d}\n' % entry.index, entry) for entry in sink_entries]
        gathered = asyncio.gather(*writes)
        await asyncio.sleep(0)
        await sink.flush()
        await gathered
    seen: list[Snapshot] = []
    feeding = asyncio.create_task(desk.feeder().run(seen.append))
    while not seen or seen[-1].window < JOBS - 20:
        await asyncio.sleep(0.01)
    assert (seen[-1].ok, seen[-1].pending, seen[-1].input_tokens) == (20, JOBS - 20, 200)
    with desk.server.client() as client:
        client.flushall()  # in the middle of the run
    seen.clear()
    while not seen or seen[-1].window < JOBS - 20:
        await asyncio.sleep(0.01)
    assert (seen[-1].ok, seen[-1].pending) == (20, JOBS - 20)
    feeding.cancel()
    await asyncio.wait({feeding})


async def test_f7_a_ledger_that_was_lost_gives_out_no_permit_for_a_lease_and_a_new_one_does(desk: Desk) -> None:
    feeder = desk.feeder()
    await feeder.register()
    redis = desk.ledger.scripts.redis
    assert await redis.exists("parley:quiet") == 0, "a run that begins holds up nobody"
    await feeder.register()
    assert await redis.exists("parley:quiet") == 0
    with desk.server.client() as client:
        client.flushall()
    await feeder.register()
    assert 59_000 < await redis.pttl("parley:quiet") <= 60_000


async def test_f7_a_private_ledger_that_was_lost_is_not_quiet(desk: Desk) -> None:
    feeder = desk.feeder()
    feeder.quiet_seconds = 0.0
    await feeder.register()
    with desk.server.client() as client:
        client.flushall()
    await feeder.register()
    assert await desk.ledger.scripts.redis.exists("parley:quiet") == 0
